/** The submission listener: software that only speaks SMTP, played by a mail library. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { mailBytesMax } from '../../src/intake/read-mail.ts'
import { press } from '../support/hosted-links.ts'
import { operator } from '../support/operator.ts'
import { refusalsOf, relayTo } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { openDialogue } from '../support/smtp-dialogue.ts'
import { replyTo, startSubmission } from '../support/submission.ts'
import { eventually } from '../support/wait.ts'

const relay = await startSmtpServer({ after })
const file = (name: string) => fileURLToPath(new URL(`../support/tls/${name}`, import.meta.url))
const tls = { certFile: file('localhost.cert.pem'), keyFile: file('localhost.key.pem') }
const anyPort = { host: '127.0.0.1', port: 0 }
const { connect, newApp, port, program, service } = await startSubmission(
  { after },
  { relays: [relayTo(relay.port)], submissions: { address: anyPort, tls } },
)
// Before the first log-in: later secrets are noticed within a second.
const [secret, ofDjango, ofKratos] = [await connect('directus'), await connect('django'), await connect('kratos')]
const directus = program('acme', secret)
const link = 'https://cms.acme.test/admin/reset-password?token=abc.def.ghi'
const mail = (to: string, change: object = {}) => ({
  from: 'cms@acme.test',
  to,
  subject: 'Password reset',
  text: `Reset your password: ${link}\n`,
  html: `<p>Evil words</p><a href="${link}">Reset</a>`,
  ...change,
})
const findEmail = (response: string) => service.store.findEmail((/em_\w+/.exec(response)?.[0] ?? '') as never)

test('a message becomes an email of Postern, and none of its words is sent', async () => {
  const reply = await replyTo(directus.sendMail(mail('ada@example.com')))
  assert.match(reply, /^250 2\.0\.0 Queued as em_/)
  const email = await eventually(async () => {
    const found = await findEmail(reply)
    return found?.state === 'delivered' ? found : null
  })
  assert.equal(email.type, 'password_reset')
  const { from, raw, to } = relay.received.find((received) => received.to.includes('ada@example.com')) ?? {}
  assert.deepEqual(to, ['ada@example.com'])
  assert.equal(from, 'auth@acme.test')
  const flat = raw?.replaceAll('=\r\n', '').replaceAll('=3D', '=') ?? ''
  assert.ok(flat.includes(link))
  assert.doesNotMatch(flat, /Evil words/)
  const line = service.log.find((each) => each.includes('"source":"smtp"')) ?? ''
  assert.match(line, /"message":"directus\.reset"/)
  assert.doesNotMatch(service.log.join(''), /ada@example\.com|abc\.def/)
})

test('a link with its secret in the path is sent as a hosted link, which opens it', async () => {
  const django = program('acme', ofDjango)
  const own = 'https://app.acme.test/accounts/reset/MQ/c8k2fz-5b1d6e0a7c3f/'
  const reply = await replyTo(django.sendMail(mail('bea@example.com', { text: own, html: undefined })))
  assert.match(reply, /^250/)
  const { raw } = await eventually(() => relay.received.find((received) => received.to.includes('bea@example.com')))
  const flat = raw.replaceAll('=\r\n', '').replaceAll('=3D', '=')
  const hosted = /https:\/\/links\.acme\.test\/acme\/go\?token=[\w.~-]+/.exec(flat)?.[0] ?? ''
  assert.ok(!flat.includes('c8k2fz'))
  const at = hosted.replace('https://links.acme.test', service.urls.links ?? '')
  assert.match(await (await fetch(at)).text(), /app\.acme\.test/)
  assert.equal((await press(at)).headers.get('location'), own)
})

test('only the secret of the app, for a system that sends over SMTP, logs in', async () => {
  const globex = await newApp('globex')
  const others = [
    ['acme', await connect('directus', globex.app)],
    ['globex', secret],
    ['acme', service.key],
    ['acme', ofKratos],
    ['acme', `${secret.slice(0, -1)}x`],
    ['nobody', secret],
    ['', ''],
    ["'; drop", 'x'.repeat(900)],
  ] as const
  for (const [user, pass] of others)
    assert.match(await replyTo(program(user, pass).sendMail(mail('x@example.com'))), /^535 5\.7\.8|Missing credentials/)
})

test('a message that Postern does not send is refused with the reason, and recorded', async () => {
  const reply = (change: object) => replyTo(directus.sendMail(mail('cleo@example.com', { html: undefined, ...change })))
  const other = await reply({ text: 'https://cms.acme.test/admin/other?token=secretsecretsecret' })
  assert.match(other, /^550 5\.7\.1 unsupported_email: No rule matches the link to cms\.acme\.test/)
  assert.match(other, /postern app update acme --auth-hook-rule '?directus:\/admin\/other=TYPE/)
  assert.doesNotMatch(other, /secretsecret/)
  assert.match(await reply({ text: 'no link' }), /^550 .*no link that matches/)
  assert.match(await reply({ text: `${link}\n${link}x` }), /^550 .*2 different links/)
  assert.match(await reply({ text: `${link} https://evil.test/x` }), /^550 .*evil\.test.*--auth-hook-ignore/)
  const poisoned = await reply({ text: link.replace('cms.acme.test', 'evil.test') })
  assert.match(poisoned, /^550 5\.7\.1 url_not_allowed: .*evil\.test.*--allow-url/)
  await eventually(async () =>
    (await refusalsOf(service.store, service.app.id)).some(({ origin }) => origin === 'https://evil.test'),
  )
})

test('the same message again is one email; limits and a revoked secret are said', async () => {
  const { app } = await newApp('limited', { limits: { keyPerMinute: 600, recipientPerHour: 1, daily: 100 } })
  const made = await connect('directus', app)
  const limited = program('limited', made)
  const message = mail('dora@example.com', { messageId: '<one@acme.test>' })
  const first = await replyTo(limited.sendMail(message))
  assert.match(first, /^250/)
  assert.equal(await replyTo(limited.sendMail(message)), first)
  const next = await replyTo(limited.sendMail(mail('dora@example.com')))
  assert.match(next, /^452 4\.7\.1 recipient_rate_limited: .* Try again in \d+ min/)
  const pooled = program('limited', made, { pool: true, maxConnections: 1 })
  assert.match(await replyTo(pooled.sendMail(mail('eve@example.com'))), /^250/)
  const key = (await service.store.listKeys(app.id)).find(({ hook }) => hook === 'directus')
  await service.store.revokeKey(key?.id ?? ('' as never), operator)
  assert.match(await replyTo(pooled.sendMail(mail('eve@example.com'))), /^550 5\.7\.1 invalid_key/)
  assert.match(await replyTo(limited.sendMail(mail('eve@example.com'))), /^535/)
})

test('one recipient, and a bounded message', async () => {
  assert.match(await replyTo(directus.sendMail(mail('a@example.com, b@example.com'))), /^250/, 'the first one')
  assert.match(await replyTo(directus.sendMail(mail('e@example.com', { text: 'x'.repeat(mailBytesMax) }))), /552/)
  assert.match(
    await replyTo(directus.sendMail(mail('no address', { envelope: { from: 'a@b.c', to: 'x' } }))),
    /^553|^501/,
  )
})

test('a password crosses the network by TLS alone', async (t) => {
  const other = await startSubmission(t, { submission: { address: anyPort, tls } })
  const own = await other.connect('directus')
  const ca = readFileSync(tls.certFile)
  const clear = await openDialogue(other.port)
  assert.doesNotMatch(await clear.ehlo(), /AUTH/)
  assert.match(clear.heard(), /^250-STARTTLS\r\n/m)
  assert.doesNotMatch(clear.heard(), /AUTH/)
  assert.match(await clear.say('AUTH PLAIN AGFjbWUAeA=='), /^5/)
  await clear.say('MAIL FROM:<a@example.com>')
  assert.match(await clear.say('RCPT TO:<b@example.com>'), /^530/)
  const upgraded = other.program('acme', own, { tls: { ca, servername: 'localhost' }, requireTLS: true })
  assert.match(await replyTo(upgraded.sendMail(mail('fay@example.com'))), /^250/)
  const implicit = program('acme', secret, {
    port: Number(new URL(service.urls.submissions ?? '').port),
    secure: true,
    tls: { ca, servername: 'localhost' },
  })
  assert.match(await replyTo(implicit.sendMail(mail('gia@example.com'))), /^250/)
})

test('after 20 failed log-ins of a network each ends its connection, and the right secret still works', async (t) => {
  const { connect: join, program: log } = await startSubmission(t, { isProxy: () => false })
  const right = await join('directus')
  const wrong = () => replyTo(log('acme', secret).sendMail(mail('x@example.com')))
  for (let n = 0; n < 20; n++) assert.match(await wrong(), /^535/)
  assert.match(await wrong(), /^421 4\.7\.0/)
  assert.match(await replyTo(log('acme', right).sendMail(mail('x@example.com'))), /^250/)
})

test('an app has 50 messages that arrive at a time, and leaves the other connections to others', async () => {
  const [acme, globex] = [await newApp('slow'), await newApp('quick')]
  const [slow, quick] = [await connect('directus', acme.app), await connect('directus', globex.app)]
  const logIn = Buffer.from(`\0slow\0${slow}`).toString('base64')
  const begin = async () => {
    const dialogue = await openDialogue(port)
    await dialogue.ehlo()
    assert.match(await dialogue.say(`AUTH PLAIN ${logIn}`), /^235/)
    await dialogue.say('MAIL FROM:<cms@acme.test>')
    await dialogue.say('RCPT TO:<ada@example.com>')
    return { ...dialogue, data: await dialogue.say('DATA') }
  }
  const held = await Promise.all(Array.from({ length: 50 }, begin))
  assert.deepEqual([...new Set(held.map(({ data }) => data.slice(0, 3)))], ['354'])
  const next = await begin()
  await eventually(() => next.isClosed())
  assert.match(await replyTo(program('quick', quick).sendMail(mail('hal@example.com'))), /^250/)
  for (const { socket } of held) socket.destroy()
  await eventually(async () =>
    (await begin()).say(`Subject: x\r\n\r\n${link}\r\n.`).then((reply) => /^250/.test(reply)),
  )
})
