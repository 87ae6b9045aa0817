/** Makes the secret that signs the webhooks of an app. Only this answer shows it. */
import { Type } from 'typebox'
import { dayMs } from '../../domain/duration.ts'
import { appNotFound } from '../operation/find-target.ts'
import { always, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { isoOrNull } from '../resources.ts'

const daySeconds = dayMs / 1000

export const makeWebhookSecret = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/secret',
  role: 'admin',
  summary:
    'Makes the secret that signs the webhooks of the app, or replaces it. The old secret also signs for `graceSeconds`, and those before it for the rest of theirs; with 0, none does.',
  body: closed({
    graceSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * daySeconds, description: 'Default: a day.' })),
  }),
  answer: closed({
    secret: Type.String({ description: 'Only this answer contains it.' }),
    oldSecretUntil: orNull(time()),
  }),
  outlives: always,
  creates: true,
  errors: ['not_found'],
  async run({ access, makeWebhookSecret: make, store }, { body: { graceSeconds = daySeconds }, params }, { id }) {
    const { sealed, secret } = make(id)
    const oldUntil = store.now() + graceSeconds * 1000
    const set = await store.setWebhookSecret({ app: id, sealed, oldUntil }, access.actor)
    if (set === null) return appNotFound(params.app)
    return done({ secret, oldSecretUntil: isoOrNull(set.old[0]?.until ?? null) }, { created: true })
  },
})
