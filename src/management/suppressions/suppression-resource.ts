/** Suppressions as operations answer with them. No address is in them. */
import { type Static, Type } from 'typebox'
import { suppressionReasons } from '../../domain/delivery/states.ts'
import { destinations } from '../../domain/delivery/suppression.ts'
import type { SuppressionRecord } from '../../store/report-store.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { present } from '../resources.ts'

export const reason = () => Type.Enum([...suppressionReasons])
export const destination = () =>
  Type.Enum([...destinations], { description: 'The large mail provider of the recipient, or `other`.' })

export const SuppressionResource = closed({
  id: Type.String(),
  app: orNull(Type.String({ description: 'The id of the app; null: mail of all apps.' })),
  reason: reason(),
  strikes: Type.Integer({ description: 'Bounces that count; a complaint counts twice.' }),
  at: time('When it began, or was last extended.'),
  until: time('For all mail but invitations.'),
  invitationsUntil: time(),
  destination: destination(),
  email: orNull(Type.String({ description: 'The last email that counted.' })),
  reply: orNull(Type.String({ description: 'The reply to it, without addresses and links.' })),
})
export type SuppressionResource = Static<typeof SuppressionResource>

export const presentSuppression = (record: SuppressionRecord): SuppressionResource =>
  present(SuppressionResource, record)
