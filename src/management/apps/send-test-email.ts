/** Queues a test email for an app, through the same intake as a request over HTTP. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { hashDeliveryKey, newDeliveryKey } from '../../domain/app/delivery-key.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { type EmailType, emailTypes } from '../../domain/request/email-request.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { acceptEmail } from '../../intake/accept-email.ts'
import { AppPolicyCache } from '../../intake/app-policy-cache.ts'
import { appNotFound } from '../find-target.ts'
import { tooManyKeys } from '../keys/create-key.ts'
import { type Context, operation } from '../operation.ts'
import { done, invalid, refuse } from '../result.ts'
import { closed } from '../schema.ts'
import { sampleLifeMs, sampleUrl } from './sample-link.ts'

/** The key of a test email is revoked at once; if that fails, it expires by itself. */
const keyMs = 600_000

export const sendTestEmail = operation({
  method: 'POST',
  path: '/v1/apps/{app}/test-email',
  role: 'operator',
  target: 'app',
  summary: 'Sends a real email with a link that leads nowhere. The limits of the app apply.',
  body: closed({
    to: Type.String({ examples: ['you@example.com'] }),
    type: Type.Optional(Type.Enum([...emailTypes])),
  }),
  answer: closed({ email: Type.String() }),
  refusals: ['test_email_refused', 'too_many_keys'],
  async run(context, { body: { to, type = 'magic_link' }, params }, app) {
    const { store, access } = context
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    if (app.status !== 'active')
      return refuse('test_email_refused', `The app ${app.slug} is disabled: enable it first.`)
    const url = sampleUrl(app)
    if (url === null)
      return refuse(
        'test_email_refused',
        `The app ${app.slug} allows no links yet: "postern app update ${app.slug} --allow-url https://…" adds one.`,
      )
    const key = newDeliveryKey()
    const expiresAt = store.now() + keyMs
    const name = `test email of ${new Date(store.now()).toISOString()}`
    const record = await store.createKey(
      { app: app.id, hash: hashDeliveryKey(key), name, expiresAt },
      access.actor,
    )
    if (record === null) return appNotFound(params.app)
    if (record === 'too_many') return tooManyKeys()
    if (record === 'name_taken')
      return refuse('test_email_refused', 'Another test email was sent at this moment; try again.')
    try {
      const answer = await post(context, { app, key, body: { to, type, url } })
      if ('rejection' in answer) return explain(answer.rejection)
      const change = { app: app.id, target: answer.emailId, before: null, after: null }
      await store.recordAction({ action: 'app.test_email', ...change }, access.actor)
      return done({ email: answer.emailId })
    } finally {
      await store.revokeKey(record.id, access.actor).catch(() => {}) // it expires by itself
    }
  },
})

type TestRequest = { app: App; key: string; body: { to: string; type: EmailType; url: string } }

function post({ store, links, onQueued }: Context, { app, key, body }: TestRequest) {
  const expiresAt = new Date(store.now() + sampleLifeMs).toISOString()
  const organisation = body.type === 'organisation_invite' ? { organisationName: app.settings.name } : {}
  const deps = {
    store,
    links,
    policies: new AppPolicyCache(),
    waitIfLate: () => undefined,
    onQueued,
  }
  return acceptEmail(deps, {
    authorization: `Bearer ${key}`,
    idempotencyKey: undefined,
    body: {
      contentType: 'application/json',
      contentEncoding: undefined,
      bytes: Buffer.from(JSON.stringify({ ...body, ...organisation, expiresAt })),
    },
  })
}

function explain({ code, message, issues = [] }: Rejection) {
  const text = `The test email was refused (${code}): ${message ?? refusals[code].message}`
  return refuse('test_email_refused', text, issues)
}
