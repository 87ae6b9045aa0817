import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { parseAppSettings } from '../../domain/app/check-settings.ts'
import { type AppSettings, defaultSettings } from '../../domain/app/settings.ts'
import type { Reference } from '../../domain/delivery/reference.ts'
import { type AppId, newId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { purposes } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { languageTags } from '../../templates/locales/language-files.ts'
import { composeMessage, MessageComposer, type MessageInput } from './compose-message.ts'

const app: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme "Auth" Team', address: 'auth@acme.test' },
  replyTo: 'help@acme.test',
}
const claim: MessageInput['claim'] = {
  type: 'organisation_invite',
  acceptedAt: Date.parse('2026-11-20T17:00:00Z'),
  ageMs: 0,
  expiresAt: Date.parse('2026-11-20T17:15:00Z'),
  content: {
    to: 'ada@example.com' as EmailAddress,
    url: `https://app.acme.test/auth?token=${'x'.repeat(2000)}`,
    organisationName: 'Größe 数',
    inviterName: 'Ada',
    messageIdDomain: 'acme.test',
  },
}

const reference = 'em_01m7x4pm530000dj4zwn0hsje3.0123456789' as Reference
const lifeLeftMs = 900_000
const appWith = (settings: AppSettings): MessageInput['app'] => ({
  id: 'app_1' as AppId,
  version: 1,
  slug: 'acme',
  settings,
})

function compose(change: Partial<AppSettings> = {}) {
  const settings = { ...app, ...change }
  const rendered = renderEmail({ ...claim, app: settings, lifeLeftMs })
  return { rendered, bytes: composeMessage({ claim, reference, app: appWith(settings), lifeLeftMs }) }
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
  assert.equal(message.messageId, `<${reference}@acme.test>`)
  assert.equal(message.date, '2026-11-20T17:00:00.000Z')
  assert.equal(header('auto-submitted'), 'auto-generated')
  assert.equal(header('x-auto-response-suppress'), 'All')
  assert.equal(header('x-entity-ref-id'), reference)
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

const text = (minLength: number, maxLength: number) =>
  fc.oneof(
    fc.string({ minLength, maxLength }),
    fc.string({ minLength, maxLength, unit: 'grapheme' }),
    fc.constantFrom('Acme', 'Größe 数', 'R&D <Labs> "x"', '...', '.', '=3D', 'to', 'url', ' x '),
  )
const settings: fc.Arbitrary<AppSettings> = fc
  .record({
    name: text(1, 60),
    sender: text(1, 60),
    replyTo: fc.option(fc.emailAddress(), { nil: undefined }),
    supportContact: fc.option(text(1, 60), { nil: undefined }),
    addressLine: fc.option(text(1, 200), { nil: undefined }),
  })
  .map(({ sender, replyTo, supportContact, addressLine, ...rest }) => ({
    ...defaultSettings,
    ...rest,
    from: { name: sender, address: 'auth@acme.test' },
    senderDomains: ['acme.test'],
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(supportContact === undefined ? {} : { supportContact }),
    branding: addressLine === undefined ? {} : { addressLine },
  }))
  .filter((made) => parseAppSettings(made, ['en']).ok)
const local = fc.stringMatching(/^[a-z0-9._+-]{1,64}$/)
const email: fc.Arbitrary<MessageInput['claim']> = fc
  .record({
    type: fc.constantFrom(...emailTypes),
    acceptedAt: fc.integer({ min: 0, max: 4e12 }),
    ageMs: fc.integer({ min: 0, max: 86_400_000 }),
    lifeMs: fc.integer({ min: 1, max: 30 * 86_400_000 }),
    to: fc.oneof(
      fc.tuple(local, fc.domain()).map(([name, domain]) => `${name}@${domain}`),
      fc.constant('dörte@größe.test'),
    ),
    token: fc.stringMatching(/^[A-Za-z0-9%&=.~!$'()*,;:@/-]{1,30}$/),
    tokens: fc.integer({ min: 1, max: 40 }),
    hosted: fc.boolean(),
    organisationName: text(1, 60),
    messageIdDomain: fc.domain(),
    locale: fc.option(fc.constantFrom(...languageTags), { nil: undefined }),
    code: fc.constantFrom({}, { code: '246813' }, { code: 'AB-1', codeFirst: true as const }),
    purpose: fc.option(fc.constantFrom(...purposes), { nil: undefined }),
  })
  .map(
    ({
      code,
      purpose,
      locale,
      type,
      acceptedAt,
      ageMs,
      lifeMs,
      to,
      token,
      tokens,
      hosted,
      organisationName,
      messageIdDomain,
    }) => ({
      emailId: newId('em', acceptedAt),
      type,
      acceptedAt,
      ageMs,
      expiresAt: acceptedAt + lifeMs,
      content: {
        to: to as EmailAddress,
        url: `https://app.acme.test/auth?token=${token.repeat(tokens)}`,
        messageIdDomain,
        ...(hosted ? { hosted: true as const } : {}),
        ...(locale && { locale }),
        ...(type === 'organisation_invite' ? { organisationName } : code),
        ...(purpose && type === 'email_verification' && { purpose }),
      },
    }),
  )

test('a filled form is byte for byte the message composed whole', () => {
  fc.assert(
    fc.property(settings, fc.array(email, { minLength: 1, maxLength: 8 }), (made, emails) => {
      const composer = new MessageComposer()
      for (const each of emails) {
        const input = { claim: each, reference, app: appWith(made), lifeLeftMs }
        // The form of a kind is made when its second email comes.
        for (const message of [composer.compose(input), composer.compose(input)])
          assert.equal(message.toString(), composeMessage(input).toString())
      }
    }),
    { numRuns: 500 },
  )
})

test('a new version of an app is a new form', () => {
  const composer = new MessageComposer()
  const input = { claim: { ...claim, type: 'magic_link' as const }, reference, app: appWith(app), lifeLeftMs }
  for (const message of [composer.compose(input), composer.compose(input)])
    assert.match(message.toString(), /Sign in to Acme/)
  const renamed = { ...appWith({ ...app, name: 'Zenith' }), version: 2 }
  assert.match(composer.compose({ ...input, app: renamed }).toString(), /Sign in to Zenith/)
})

test('a long link makes its part quoted-printable, though the form is 7bit', () => {
  const url = `https://app.acme.test/auth?token=${'x'.repeat(900)}`
  const input = {
    claim: { ...claim, type: 'magic_link' as const, content: { ...claim.content, url } },
    reference,
    app: appWith(app),
    lifeLeftMs,
  }
  const composer = new MessageComposer()
  composer.compose(input)
  const message = composer.compose(input).toString()
  assert.equal(message.match(/quoted-printable/g)?.length, 2)
  assert.equal(message, composeMessage(input).toString())
})

test('the Date is that of acceptance, and after half an hour that of the attempt', () => {
  const dateOf = (ageMs: number) => {
    const bytes = composeMessage({ claim: { ...claim, ageMs }, reference, app: appWith(app), lifeLeftMs })
    return /^Date: (.*)\r$/m.exec(bytes.toString())?.[1]
  }
  assert.equal(dateOf(30 * 60_000), 'Fri, 20 Nov 2026 17:00:00 +0000')
  assert.equal(dateOf(30 * 60_000 + 1000), 'Fri, 20 Nov 2026 17:30:01 +0000')
})

test('Expires says when the link expires, in each email made of one form', () => {
  const composer = new MessageComposer()
  const expiry = (expiresAt: number) => {
    const input = {
      claim: { ...claim, type: 'magic_link' as const, expiresAt },
      reference,
      app: appWith(app),
      lifeLeftMs,
    }
    return /^Expires: (.*)\r$/m.exec(composer.compose(input).toString())?.[1]
  }
  const given = [
    '2026-11-20T17:15:00Z',
    '2026-11-21T00:00:59.999Z',
    '2026-11-20T17:15:00+05:30',
    '9999-12-31T23:59:59Z',
  ]
  assert.deepEqual(
    given.map((each) => expiry(Date.parse(each))),
    [
      'Fri, 20 Nov 2026 17:15:00 +0000',
      'Sat, 21 Nov 2026 00:00:59 +0000',
      'Fri, 20 Nov 2026 11:45:00 +0000',
      'Fri, 31 Dec 9999 23:59:59 +0000',
    ],
  )
})
