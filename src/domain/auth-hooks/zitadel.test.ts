import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { lacking } from '../../../test/support/installed.ts'
import { zitadel } from './zitadel.ts'

/** The messages of a body, or its issues as text. */
function read(body: unknown) {
  const result = zitadel.read(body)
  return result.ok ? result.value : result.issues.map(({ field, code }) => `${field} ${code}`)
}

const to = 'ana@example.com'
const url = 'https://id.example.com/ui/login/mail/verification?userID=1&code=0M53RF&orgID=2'
const code = '0M53RF'

type Parts = { eventType: unknown; url?: unknown; args?: object; to?: unknown }
const notify = ({ eventType, url: link = url, args = { code }, to: recipient = to }: Parts) =>
  read({ contextInfo: { eventType, recipientEmailAddress: recipient }, templateData: { url: link }, args })

test('each event of Zitadel has its email', () => {
  const events = Object.entries(zitadel.kinds).map(([name, kind]) =>
    kind === 'notice' ? `${name} -` : [name, kind.type, kind.purpose ?? '', kind.lifeSeconds].join(' '),
  )
  assert.deepEqual(events, [
    'user.human.initialization.code.added email_verification  259200',
    'user.human.email.code.added email_verification  3600',
    'user.human.password.code.added password_reset  3600',
    'user.human.mfa.otp.email.code.added magic_link  ',
    'session.otp.email.challenged magic_link  ',
    'user.human.invite.code.added organisation_invite  259200',
    'user.human.password.changed -',
    'user.domain.claimed -',
  ])
})

test('the body that the documents of Zitadel show is read', () => {
  // The fields of notification-providers.mdx at 59826369, with an https link.
  const body = {
    contextInfo: {
      eventType: 'user.human.initialization.code.added',
      provider: { id: '285181292935381355', description: 'test' },
      recipientEmailAddress: 'example@zitadel.com',
    },
    templateData: {
      title: 'Zitadel - Initialize User',
      text: 'Hello',
      url,
      buttonText: 'Finish initialization',
    },
    args: {
      changeDate: '2024-09-16T10:58:50.73237+02:00',
      code,
      loginNames: ['Username'],
      verifiedPhone: '',
    },
  }
  const kind = 'user.human.initialization.code.added'
  const recipient = 'example@zitadel.com'
  const once = JSON.stringify([kind, recipient, url, code])
  assert.deepEqual(read(body), [{ kind, to: recipient, original: url, code, once }])
})

test('an email of Zitadel has a link, and a code if there is one', () => {
  const kind = 'user.human.password.code.added'
  const once = JSON.stringify([kind, to, url, code])
  assert.deepEqual(notify({ eventType: kind }), [{ kind, to, original: url, code, once }])
  const without = JSON.stringify([kind, to, url, ''])
  assert.deepEqual(notify({ eventType: kind, args: {} }), [{ kind, to, original: url, once: without }])
  assert.deepEqual(notify({ eventType: kind, url: '', to: 'ana', args: { code: 5 } }), [
    'contextInfo.recipientEmailAddress not_an_address',
    'templateData.url required',
    'args.code not_a_string',
  ])
})

test('an event of a former version is the same message', () => {
  for (const name of ['initialization.code.added', 'email.code.added', 'password.code.added', 'password.changed'])
    assert.deepEqual(notify({ eventType: `user.${name}` }), notify({ eventType: `user.human.${name}` }))
  assert.deepEqual(notify({ eventType: 'user.human.domain.claimed' }), ['contextInfo.eventType unknown_kind'])
})

test('a link to register a passkey is refused: no email has its words', () => {
  const eventType = 'user.human.passwordless.initialization.code.requested'
  assert.deepEqual(notify({ eventType }), ['contextInfo.eventType unknown_kind'])
})

test('the life of a one-time password is what Zitadel says, in nanoseconds', () => {
  for (const eventType of ['session.otp.email.challenged', 'user.human.mfa.otp.email.code.added']) {
    const life = (expiry: unknown) => {
      const [first] = notify({ eventType, args: { code, expiry } })
      return typeof first === 'object' ? first.lifeSeconds : first
    }
    assert.equal(life(300_000_000_000), 300)
    assert.equal(life(1_500_000_000), 2)
    assert.equal(life(30 * 86_400 * 1e9), 30 * 86_400)
    for (const expiry of [0, -1, 1.5, 31 * 86_400 * 1e9, '300000000000', '5m0s'])
      assert.equal(life(expiry), 'args.expiry out_of_range')
    assert.equal(life(undefined), 'args.expiry required')
  }
  const [other] = notify({ eventType: 'user.human.email.code.added', args: { code, expiry: 5 } })
  assert.ok(typeof other === 'object' && other.lifeSeconds === undefined)
})

test('an invitation names the application, unless it is Zitadel itself; its code is for a page alone', () => {
  const kind = 'user.human.invite.code.added'
  const message = { kind, to, original: url, token: code, once: JSON.stringify([kind, to, url, code]) }
  const invite = (applicationName: unknown) => notify({ eventType: kind, args: { code, applicationName } })
  assert.deepEqual(invite('Shop'), [{ ...message, organisationName: 'Shop' }])
  for (const name of ['ZITADEL', '', null, 7, undefined]) assert.deepEqual(invite(name), [message])
})

test('a login name in the query is percent-encoded, and the rest of the link stays', () => {
  const original = (link: string) => {
    const [message] = notify({ eventType: 'user.human.email.code.added', url: link })
    return typeof message === 'object' ? message.original : message
  }
  assert.equal(
    original('https://id.example.com/ui?loginname=Zoë "Z" <a\\b>\n\u{1f600}&code=%2B+1#é'),
    'https://id.example.com/ui?loginname=Zo%C3%AB%20%22Z%22%20%3Ca%5Cb%3E%0A%F0%9F%98%80&code=%2B+1%23%C3%A9',
  )
  for (const link of ['https://ex ämple.com/\\x', 'https://ex ämple.com/\\x?']) assert.equal(original(link), link)
})

test('a notice of Zitadel needs nothing', () => {
  const [kind, contextInfo] = ['user.domain.claimed', { eventType: 'user.domain.claimed' }]
  assert.deepEqual(read({ contextInfo }), [{ kind, to: '', once: null }])
  assert.deepEqual(read({ contextInfo: { ...contextInfo, recipientEmailAddress: to } }), [{ kind, to, once: null }])
})

const { auth } = zitadel
assert.ok(auth.kind === 'signed')

test('a call is verified with the signing key', { skip: lacking('openssl') }, () => {
  const secret = 'hT2mQv8Zx4Lk9Rb1Nc6Wd3Yf7Gj5Ps0A'
  const body = Buffer.from(JSON.stringify(zitadel.sample('session.otp.email.challenged')))
  const input = Buffer.concat([Buffer.from('1780000000.'), body])
  const hex = execFileSync('openssl', ['dgst', '-sha256', '-hmac', secret, '-r'], { input }).toString().slice(0, 64)
  const call = { headers: { 'zitadel-signature': `t=1780000000,v1=${hex}` }, body, nowMs: 1_780_000_100_000 }
  assert.ok(auth.verify({ ...call, secret }))
  for (const other of [secret.slice(1), secret.toLowerCase(), '', 'short'])
    assert.ok(!auth.verify({ ...call, secret: other }))
})

test('a key that no signature can have is not taken, even if a call is signed with it', {
  skip: lacking('openssl'),
}, () => {
  const hex = execFileSync('openssl', ['dgst', '-sha256', '-hmac', 'short', '-r'], { input: '1780000000.{}' })
  const headers = { 'zitadel-signature': `t=1780000000,v1=${hex.toString().slice(0, 64)}` }
  const call = { headers, body: Buffer.from('{}'), nowMs: 1_780_000_000_000 }
  assert.ok(!auth.verify({ ...call, secret: 'short' }))
})

test('a signing key has 16 to 256 characters, and Postern makes none', () => {
  assert.equal(auth.makeSecret, null)
  for (const key of ['k'.repeat(16), 'k'.repeat(256), '!~'.repeat(8)]) assert.equal(auth.checkSecret(key), null)
  for (const key of ['', 'k'.repeat(15), 'k'.repeat(257), `${'k'.repeat(16)} `, `${'k'.repeat(16)}\n`, 'é'.repeat(16)])
    assert.match(auth.checkSecret(key) ?? '', /signingKey/)
})

test('the instructions are commands of a shell, whatever the address', () => {
  const steps = zitadel.setUp({ url: "https://hooks.example.com/it's", secret: null })
  const data = execFileSync('sh', ['-c', `curl() { printf %s "$9"; }\n${steps[0]?.block}`], {
    encoding: 'utf8',
  })
  assert.deepEqual(JSON.parse(data), { endpoint: "https://hooks.example.com/it's", description: 'Postern' })
})
