/** A one-time code beside the link: shown if the app allows it, ignored otherwise, and nowhere else. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { consolePages, newVisitor, signInMany, startBusyConsole } from '../support/console.ts'
import { startHostedLinks } from '../support/hosted-links.ts'
import { operator } from '../support/operator.ts'
import { relayTo, testSettings, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const { service, receive, visit, newApp } = await startHostedLinks({ after })
const { key } = await newApp('codes', { allowCodes: true, hostedLinks: 'off' })
const authorization = `Bearer ${key}`
const post = (change: Record<string, unknown>, headers = { authorization }) =>
  service.post(validBody({ to: `code${serial++}@example.com`, ...change }), headers)
let serial = 0

const issuesOf = ({ body }: Awaited<ReturnType<typeof post>>) =>
  (body.error?.issues ?? []).map(({ field, code }) => `${field} ${code}`)

/** The first text that a mail client shows beside the subject. */
const readPreheader = (html: string) => /<div style="display:none[^>]*>([^&]*)/.exec(html)?.[1] ?? ''

test('the code stands beside the link in both parts, whole, and not where lists and lock screens show it', async () => {
  for (const type of ['magic_link', 'email_verification', 'password_reset']) {
    const { html, text, ...email } = await receive({ type, code: 'AB-C0DE' }, key)
    assert.match(text, /enter this code .*:\nAB-C0DE\n/)
    assert.match(text, /The link and the code expire in 15 minutes/)
    assert.match(text, /Nobody from Acme will ask you for it/)
    assert.match(text, /for you alone/, 'also a verification, whose link alone is no secret')
    assert.match(html, /<p class="ink code" dir="ltr"/)
    assert.ok(text.indexOf('?token=abc') < text.indexOf('AB-C0DE'), 'the link comes first')
    assert.ok(html.includes('<span>AB-C0DE</span>'))
    const hidden = [(email as { subject?: string }).subject, readPreheader(html), /<title>.*/.exec(html)?.[0]]
    assert.ok(
      hidden.every((part) => part && !part.includes('AB-C0DE')),
      JSON.stringify(hidden),
    )
  }
  const { html } = await receive({ code: '246813' }, key)
  assert.match(html.replace(/<[^>]+>/g, ''), /246813/, 'its halves are apart for the eye alone')
})

test('a code that is the token of the link comes first, with a button to where it is typed', async () => {
  const { html, text } = await receive({ code: '246813', url: 'https://app.acme.test/enter?token=246813' }, key)
  assert.match(text, /Enter this code to sign in to Acme:\n246813\n\nOpen Acme\nhttps:/)
  assert.match(text, /The code expires in 15 minutes/)
  assert.match(readPreheader(html), /^Enter this code to sign in to Acme(?!:)/)
  assert.ok(html.indexOf('<span>246</span>') < html.indexOf('Open Acme'))
  assert.match(text, /Nobody from Acme will ask you for it/)
  for (const part of [html, text]) assert.doesNotMatch(part, /Press the button/)
  const other = await receive({ code: 'AB-c1', url: 'https://app.acme.test/enter?token=ab-C1' }, key)
  assert.match(other.text, /Or enter this code/, 'in another case it is another token')
  const invitation = { type: 'organisation_invite', organisationName: 'Blue' }
  assert.match((await receive(invitation, key)).text, /The link expires in/)
  // Decoded: a library may escape it.
  const escaped = await receive({ code: 'A-b1', url: 'https://app.acme.test/enter?token=A%2Db1' }, key)
  assert.match(escaped.text, /Open Acme/)
})

test('the page of a hosted link does not show the code, and its button leads on with it', async () => {
  const hosted = await newApp('hosted-codes', { allowCodes: true })
  const url = 'https://app.acme.test/enter?token=246813'
  const email = await receive({ code: '246813', url }, hosted.key)
  assert.match(email.url, /^https:\/\/links\.acme\.test\//)
  assert.match(email.text, /\n246813\n/)
  const page = await (await visit(email.url)).text()
  assert.match(page, /Open Acme|Sign in/)
  assert.doesNotMatch(page.replaceAll(/<(a|form)\b[^>]*>/g, ''), /246813/)
})

test('without the setting, a code of any kind is ignored, and the answer says so', async () => {
  const plain = await newApp('no-codes', { hostedLinks: 'off' })
  const own = { authorization: `Bearer ${plain.key}` }
  for (const code of ['246813', 'not a code!', '', 246813, true, ['x'], { a: 'x' }]) {
    const answer = await post({ code }, own)
    assert.deepEqual([answer.status, answer.headers.get('postern-ignored')], [202, 'code'], JSON.stringify(code))
  }
  for (const change of [{}, { code: null }])
    assert.equal((await post(change, own)).headers.get('postern-ignored'), null)
  const invitation = { type: 'organisation_invite', organisationName: 'Acme', code: '246813' }
  assert.equal((await post(invitation, own)).status, 202)
  const email = await receive({ code: '246813' }, plain.key)
  assert.doesNotMatch(email.text + email.html, /246813|ui-monospace/)
})

test('a replay says it too, and a change of the setting holds for the next request', async () => {
  const changing = await newApp('changing-codes', { hostedLinks: 'off' })
  const own = { authorization: `Bearer ${changing.key}`, 'idempotency-key': 'k' }
  const body = validBody({ to: 'again@example.com', code: '246813' })
  const ignored = async () => (await service.post(body, own)).headers.get('postern-ignored')
  assert.deepEqual([await ignored(), await ignored()], ['code', 'code'])
  const elsewhere = { ...testSettings, hostedLinks: 'off' as const, allowedUrls: ['https://other.test'] }
  await service.store.updateApp(changing.app.id, { settings: elsewhere }, operator)
  assert.equal(await ignored(), 'code', 'also if the request would now be refused')
  const settings = { ...testSettings, hostedLinks: 'off' as const, allowCodes: true }
  await service.store.updateApp(changing.app.id, { settings }, operator)
  assert.equal((await post({ code: '!' }, { authorization: own.authorization })).status, 400)
  assert.match((await receive({ code: '246813' }, changing.key)).text, /\n246813\n/)
})

test('with the setting, faults of the code are listed beside the others, and repeat nothing', async () => {
  const answer = await post({ code: 'CANARY CODE', to: 'nobody' })
  assert.equal(answer.status, 400)
  assert.deepEqual(issuesOf(answer), ['to not_an_address', 'code malformed_code'])
  assert.doesNotMatch(JSON.stringify(answer.body), /CANARY/)
  assert.deepEqual(issuesOf(await post({ code: 246813 })), ['code not_a_string'])
  const invitation = { type: 'organisation_invite', organisationName: 'Acme', code: '246813' }
  assert.deepEqual(issuesOf(await post(invitation)), ['code code_not_for_invitations'])
  const reused = { authorization, 'idempotency-key': 'one' }
  const body = validBody({ to: 'reused@example.com', code: '246813' })
  assert.equal((await service.post(body, reused)).status, 202)
  const other = await service.post({ ...body, code: '246814' }, reused)
  assert.deepEqual(issuesOf(other), ['Idempotency-Key idempotency_key_reused'])
})

test('a relay that repeats the code leaks it into no record, page, log or metric', async (t) => {
  const said = 'your code CANARY-C0DE, that is canaryc0de, in HTML <b>CANARY</b><i>C0DE</i>'
  const replies = { rcpt: ['250 ok'], dot: ['250 ok'] }
  const answer = (step: keyof typeof replies) => (socket: Socket) =>
    socket.write(`${replies[step].length > 1 ? replies[step].shift() : replies[step][0]}\r\n`)
  const relay = await startScriptedServer(t, { rcpt: answer('rcpt'), dot: answer('dot') })
  // Before these, the mail of the busy console was taken.
  const config = relayTo(relay.port, {})
  const busy = await startBusyConsole(t, { relays: [config], settings: { allowCodes: true } })
  const visitor = newVisitor(busy, await signInMany(busy))
  replies.rcpt = [`550 5.1.1 ${said}`, `450 4.2.0 ${said}`, '250 ok']
  replies.dot = [`250 ok ${said}`, `535 5.7.8 ${said}`]
  const ids: string[] = []
  for (const wanted of ['failed', 'deferred', 'delivered', 'unattempted']) {
    const to = `leak${ids.length}@example.com`
    const { headers } = await busy.post(validBody({ to, code: 'CANARY-C0DE' }, busy.store.now()))
    const id = headers.get('email-id') ?? ''
    ids.push(id)
    await eventually(async () =>
      (await busy.store.findEmail(id as EmailId))?.trail.some(({ outcome }) => outcome === wanted),
    )
  }
  const pages = [...(await consolePages(busy)), '/emails', '/delivery', ...ids.map((id) => `/emails/${id}`)]
  const shown = await Promise.all(pages.map(async (path) => (await visitor.get(path)).text()))
  const records = await Promise.all(ids.map((id) => busy.store.findEmail(id as EmailId)))
  const metrics = await (await fetch(`${busy.urls.ops}/metrics`)).text()
  const everything = [JSON.stringify(records), ...shown, ...busy.log, metrics].join('\n')
  for (const code of ['250', '450', '550', '535'])
    assert.match(everything, new RegExp(`${code} [\\w. ]*your code (<|&lt;)code`), `${code} was recorded`)
  assert.doesNotMatch(everything, /canary.{0,9}c0de/i)
})
