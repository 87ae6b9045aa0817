import assert from 'node:assert/strict'
import { test } from 'node:test'
import PostalMime from 'postal-mime'
import { type AppSettings, defaultSettings } from '../../domain/app/settings.ts'
import type { EmailId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { composeMessage, type MessageParts } from './compose-message.ts'

const app: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme "Auth" Team', address: 'auth@acme.test' },
  replyTo: 'help@acme.test',
}
const claim: MessageParts['claim'] = {
  emailId: 'em_01m7x4pm530000dj4zwn0hsje3' as EmailId,
  type: 'organisation_invite',
  acceptedAt: Date.parse('2026-11-20T17:00:00Z'),
  content: {
    to: 'ada@example.com' as EmailAddress,
    url: `https://app.acme.test/auth?token=${'x'.repeat(2000)}`,
    organisationName: 'Größe 数',
    inviterName: 'Ada',
    messageIdDomain: 'acme.test',
  },
}

function compose(change: Partial<AppSettings> = {}) {
  const settings = { ...app, ...change }
  const rendered = renderEmail({
    ...claim,
    app: settings,
    expiresAt: claim.acceptedAt + 900_000,
    lifeLeftMs: 900_000,
  })
  return { rendered, bytes: composeMessage({ claim, app: settings, slug: 'acme', rendered }) }
}

test('another implementation reads back every header and both parts', async () => {
  const { rendered, bytes } = compose()
  const message = await PostalMime.parse(bytes)
  const header = (name: string) => message.headers.find((entry) => entry.key === name)?.value
  assert.deepEqual({ ...message.from }, { name: 'Acme "Auth" Team', address: 'auth@acme.test' })
  assert.deepEqual(
    message.to?.map((to) => to.address),
    ['ada@example.com'],
  )
  assert.deepEqual(
    message.replyTo?.map((to) => to.address),
    ['help@acme.test'],
  )
  assert.equal(message.subject, rendered.subject)
  assert.equal(message.messageId, '<em_01m7x4pm530000dj4zwn0hsje3@acme.test>')
  assert.equal(message.date, '2026-11-20T17:00:00.000Z')
  assert.equal(header('auto-submitted'), 'auto-generated')
  assert.equal(header('x-auto-response-suppress'), 'All')
  assert.equal(header('x-entity-ref-id'), claim.emailId)
  assert.equal(header('feedback-id'), 'organisation_invite:acme:auth:postern')
  assert.equal(header('list-unsubscribe'), undefined)
  assert.equal(message.text?.replaceAll('\r\n', '\n').trimEnd(), rendered.text.trimEnd())
  assert.equal(message.html?.replaceAll('\r\n', '\n').trimEnd(), rendered.html.trimEnd())
})

test('every line keeps to SMTP: CR LF, 998 octets, no bare dot trouble, headers in ASCII', () => {
  const text = compose({ from: { name: 'Größe 数', address: 'auth@acme.test' } }).bytes.toString('latin1')
  assert.doesNotMatch(text, /[^\r]\n|\r[^\n]/)
  for (const line of text.split('\r\n')) assert.ok(line.length <= 998)
  assert.match(text.slice(0, text.indexOf('\r\n\r\n')), /^[\x20-\x7e\r\n\t]*$/)
})

test('a name with controls cannot reach a header: settings refuse it, and quoting holds', async () => {
  const { bytes } = compose({ from: { name: 'A\\" <evil@x.test>, "B', address: 'auth@acme.test' } })
  const message = await PostalMime.parse(bytes)
  assert.equal(message.from?.address, 'auth@acme.test')
})
