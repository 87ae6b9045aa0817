/** The parts of answers about webhooks. */
import { Type } from 'typebox'
import { webhookEvents } from '../../domain/webhooks/webhook.ts'
import type { WebhookMessageRecord } from '../../store/webhook-store.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso, isoOrNull } from '../resources.ts'

export const WebhookMessageResource = closed({
  id: Type.String({ description: 'The header `webhook-id` of each try.' }),
  event: Type.Enum([...webhookEvents]),
  email: orNull(Type.String()),
  at: time(),
  state: Type.Enum(['waiting', 'sent', 'given_up']),
  tries: Type.Integer(),
  nextTryAt: orNull(time()),
  result: orNull(Type.String({ description: 'The last try: the status of the answer, or why there was none.' })),
})

export const presentMessage = ({ at, dueAt, email, event, id, result, tries }: WebhookMessageRecord) =>
  ({
    ...{ id, event, email, at: iso(at), tries, result },
    state: dueAt !== null ? 'waiting' : isTaken(result) ? 'sent' : 'given_up',
    nextTryAt: isoOrNull(dueAt),
  }) as const

const isTaken = (result: string | null): boolean => /^2\d\d$/.test(result ?? '')
