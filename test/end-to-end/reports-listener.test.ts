/** Webhooks of mail providers, from the call to the record of the email. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { close, listen } from '../../src/web/http/listener.ts'
import { newReportsListener } from '../../src/web/reports/reports-listener.ts'
import type { Headers } from '../support/auth-hooks.ts'
import {
  basicHeader,
  type Caller,
  callers,
  newSecrets,
  prove,
  readKeys,
  readPayload,
  signCall,
  writeKeys,
} from '../support/provider-calls.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const [secrets, others] = [newSecrets(1), newSecrets(2)]
const address = { host: '127.0.0.1', port: 0 }
const reports = { address, keys: readKeys(writeKeys(secrets)) }
const relay = await startSmtpServer({ after })
const settings = { limits: { keyPerMinute: 100_000, recipientPerHour: 1000, daily: 1_000_000 } }
const service = await startTestService({ after }, { relays: [relayTo(relay.port)], reports, settings })
const { store } = service

async function deliver(to: string): Promise<{ id: EmailId; reference: string; to: string }> {
  const answer = await service.post(validBody({ to }))
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
  return { id, reference: store.makeReference(id), to }
}

const post = async (provider: string, body: string | Uint8Array, headers: Headers, at = service.urls.reports) => {
  const answer = await fetch(`${at}/reports/${provider}`, {
    method: 'POST',
    headers,
    body: Buffer.from(body),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** A call as the provider makes it. */
function call(provider: Caller, body: unknown, at = service.urls.reports) {
  const { headers, text } = signCall(provider, secrets, { body, atMs: store.now() })
  return post(provider, text, headers, at)
}

const show = async (id: EmailId) => {
  const email = await store.findEmail(id)
  assert.ok(email)
  return { state: email.state, reason: email.reason, lines: email.trail.map(({ outcome }) => outcome) }
}

const findSuppression = async (to: string) =>
  (await store.findSuppressions(store.nameRecipient(to as EmailAddress)))[0] ?? null

const gone: Readonly<Record<Caller, string>> = {
  postmark: 'bounce',
  resend: 'bounce-suppressed',
  sendgrid: 'bounce',
  mailgun: 'failed-permanent',
  brevo: 'hard-bounce-gone',
  generic: 'bounced',
}
const complaints: Readonly<Record<Caller, string>> = {
  postmark: 'spam-complaint',
  resend: 'complained',
  sendgrid: 'spamreport',
  mailgun: 'complained',
  brevo: 'spam',
  generic: 'complained',
}
const confirmations: Readonly<Record<Caller, string>> = {
  postmark: 'delivery',
  resend: 'delivered',
  sendgrid: 'delivered',
  mailgun: 'delivered',
  brevo: 'delivered',
  generic: 'confirmed',
}

for (const provider of callers)
  test(`${provider}: a delivery, a bounce and a complaint are in the record, and suppress as they should`, async () => {
    const email = await deliver(`${provider}@example.com`)
    const { id, to } = email
    const send = (name: string) => call(provider, readPayload(provider, name, email))
    const arrival = await send(confirmations[provider])
    assert.deepEqual([arrival.status, arrival.text], [200, '{"ok":true,"results":{"recorded":1}}'])
    assert.equal((await send(gone[provider])).status, 200)
    const cause = provider === 'resend' ? 'relay_suppressed' : 'no_mailbox'
    const record = { state: 'bounced', reason: cause, lines: ['delivered', 'confirmed', 'bounced'] }
    assert.deepEqual(await show(id), record, 'a bounce after a delivery holds')
    assert.equal((await findSuppression(to))?.reason ?? null, provider === 'resend' ? null : cause)
    // A repeat, and a delivery that is reported late: the bounce stays, and so does its suppression.
    for (const name of [confirmations[provider], gone[provider]])
      assert.equal((await send(name)).text, '{"ok":true,"results":{"already":1}}')
    assert.deepEqual(await show(id), record)
    assert.equal((await send(complaints[provider])).status, 200)
    assert.equal((await show(id)).state, 'complained')
    assert.equal((await findSuppression(to))?.reason, 'complaint')
    const heard = (await store.listReportSources()).find(({ source }) => source === provider)
    assert.ok(Math.abs((heard?.heardAt ?? 0) - store.now()) < 60_000)
  })

test('a delivery to the mailbox ends the suppression of one that was called missing, in one order only', async () => {
  const [first, second] = [await deliver('mia@example.com'), await deliver('mia@example.com')]
  await call('postmark', readPayload('postmark', 'bounce', first))
  assert.equal((await findSuppression(first.to))?.reason, 'no_mailbox')
  await call('postmark', readPayload('postmark', 'delivery', first))
  assert.ok(await findSuppression(first.to), 'the same email bounced')
  await call('postmark', readPayload('postmark', 'delivery', { ...second, to: 'other@example.com' }))
  assert.ok(await findSuppression(first.to), 'delivered to another address')
  await call('postmark', readPayload('postmark', 'delivery', second))
  assert.equal(await findSuppression(first.to), null)
  const third = await deliver(first.to)
  await call('postmark', readPayload('postmark', 'spam-complaint', second))
  await call('postmark', readPayload('postmark', 'delivery', third))
  assert.equal((await findSuppression(first.to))?.reason, 'complaint')
})

test('a bounce about another address is recorded, and suppresses nobody', async () => {
  const email = await deliver('nia@example.com')
  await call('sendgrid', readPayload('sendgrid', 'bounce', { ...email, to: 'behind@example.org' }))
  assert.equal((await show(email.id)).state, 'bounced')
  assert.equal(await findSuppression(email.to), null)
  assert.equal(await findSuppression('behind@example.org'), null)
})

test('an email in the queue is reported again later, and the rest of the batch is recorded at once', async (t) => {
  const held = await startTestService(t, { roles: new Set(['api', 'reports'] as const), reports })
  const accept = async (to: string) => {
    const id = ((await held.post(validBody({ to }))).headers.get('email-id') ?? '') as EmailId
    return { id, reference: held.store.makeReference(id), to }
  }
  const finish = async () => {
    for (const claim of (await held.store.claimDue({ max: 9, perApp: 9, leases: [] })).claims)
      await held.store.recordOutcome(claim, { kind: 'expired' })
  }
  const ended = await accept('oli@example.com')
  await finish()
  const queued = await accept('ole@example.com')
  const batch = [queued, ended].flatMap((email) => readPayload('sendgrid', 'bounce', email) as object[])
  const first = await call('sendgrid', batch, held.urls.reports)
  assert.deepEqual([first.status, first.headers.get('retry-after')], [503, '60'])
  const lines = async ({ id }: typeof queued) => (await held.store.findEmail(id))?.trail.map(({ outcome }) => outcome)
  assert.deepEqual([await lines(ended), await lines(queued)], [['bounced'], []])
  await finish()
  const second = await call('sendgrid', batch, held.urls.reports)
  assert.equal(second.text, '{"ok":true,"results":{"recorded":1,"already":1}}')
  assert.deepEqual(await lines(queued), ['bounced'])
})

test('a batch of a thousand events, ours and others’', async () => {
  const email = await deliver('pia@example.com')
  const foreign = { reference: 'x', to: 'stranger@example.com' }
  const forged = { ...email, reference: email.reference.replace(/.{10}$/, '0123456789') }
  const events = [
    ...Array.from({ length: 400 }, () => readPayload('sendgrid', 'open', email)),
    ...Array.from({ length: 300 }, () => readPayload('sendgrid', 'delivered', foreign)),
    ...Array.from({ length: 298 }, () => readPayload('sendgrid', 'bounce', forged)),
    readPayload('sendgrid', 'delivered', email),
    readPayload('sendgrid', 'bounce', email),
  ].flat()
  assert.equal(
    (await call('sendgrid', events)).text,
    '{"ok":true,"results":{"ignored":400,"unmatched":598,"recorded":2}}',
  )
  assert.equal((await show(email.id)).state, 'bounced')
  assert.equal(await findSuppression('stranger@example.com'), null)
})

test('a stranger gets one answer, whatever is wrong, and nothing is recorded', async () => {
  const email = await deliver('quin@example.com')
  const now = store.now()
  const texts = new Set<string>()
  for (const provider of callers) {
    const body = readPayload(provider, gone[provider], email)
    const right = signCall(provider, secrets, { body, atMs: now })
    const strangers: [string, Headers][] = [
      [right.text, {}],
      [right.text, signCall(provider, others, { body, atMs: now }).headers],
      [right.text, basicHeader(others.basic)],
      [right.text, { authorization: `Bearer ${service.key}` }],
      ['', {}],
      ['[[', {}],
    ]
    const isSigned = provider === 'resend' || provider === 'sendgrid'
    if (isSigned)
      strangers.push(
        [right.text, basicHeader(secrets.basic)],
        [`${right.text} `, right.headers],
        [JSON.stringify(body, null, 1), right.headers],
      )
    if (provider === 'resend') {
      for (const byMs of [-310_000, 310_000])
        strangers.push([right.text, prove(provider, secrets, { text: right.text, atMs: now + byMs })])
    }
    if (provider === 'mailgun') {
      strangers.push([JSON.stringify(body), right.headers])
      strangers.push([signCall(provider, others, { body, atMs: now }).text, right.headers])
    }
    for (const [text, headers] of strangers) {
      const answer = await post(provider, text, headers)
      assert.equal(answer.status, 401, provider)
      texts.add(answer.text.replace(/req_\w+/, 'ID'))
    }
  }
  assert.equal(texts.size, 1)
  assert.deepEqual((await show(email.id)).lines, ['delivered'])
})

test('what is no JSON is said to be so; a body of 1 MiB is read, and one more byte is not', async () => {
  const send = (text: string | Uint8Array) => post('generic', text, basicHeader(secrets.basic))
  for (const text of ['', '{', 'x', '"\\x"', new Uint8Array([0xff, 0xfe]), '['.repeat(1000), nest(21)]) {
    const answer = await send(text)
    assert.deepEqual([answer.status, answer.text.includes('not_json')], [400, true])
  }
  const form = { ...basicHeader(secrets.basic), 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await post('mailgun', 'event=delivered&token=x', form)).status, 400)
  for (const text of [
    'null',
    '1',
    '"x"',
    '[]',
    '{}',
    '[null,1,"x",[],{}]',
    nest(20),
    '{"__proto__":{"kind":"confirmed"}}',
  ])
    assert.equal((await send(text)).status, 200, text)
  const email = await deliver('rex@example.com')
  const text = JSON.stringify(readPayload('generic', 'bounced', email))
  const full = text.padStart(1024 * 1024)
  assert.match((await send(` ${full}`)).text, /body_too_large/)
  assert.equal((await show(email.id)).state, 'delivered')
  assert.equal((await send(full)).text, '{"ok":true,"results":{"recorded":1}}')
})

const nest = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

test('other addresses and methods are refused', async () => {
  const { basic } = secrets
  for (const path of ['unknown', 'constructor', 'postmark/x', ''])
    assert.equal((await post(path, '{}', basicHeader(basic))).status, 404, path)
  const answer = await fetch(`${service.urls.reports}/reports/postmark`)
  assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST'])
})

test('while the store does not answer, a provider is asked to repeat, and a stranger is refused', async (t) => {
  const email = await deliver('sam@example.com')
  const down = () => Promise.reject(new StoreUnavailable('down'))
  const events: string[] = []
  const state = { isStopping: false }
  const listener = newReportsListener({
    store: { ...store, findReported: down, recordReport: down },
    emit: ({ kind }) => void events.push(kind),
    keys: reports.keys,
    sealRecipient: () => '',
    isStopping: () => state.isStopping,
  })
  t.after(() => close(listener, 1000))
  const at = await listen(listener, address)
  const body = readPayload('resend', 'hard-bounce', email)
  const answer = await call('resend', body, at)
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '60'])
  const stranger = await post('resend', JSON.stringify(body), {}, at)
  assert.deepEqual([stranger.status, stranger.headers.get('connection')], [401, 'close'])
  const opened = readPayload('resend', 'opened', email)
  assert.equal((await call('resend', opened, at)).status, 200, 'it needs no store')
  state.isStopping = true
  assert.equal((await call('resend', opened, at)).status, 503)
  assert.deepEqual(events, ['store_unavailable', 'provider_call_refused'])
})

test('metrics count by source; the log tells each report without an address', async () => {
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  for (const provider of callers)
    assert.match(metrics, new RegExp(`postern_reports_total\\{source="${provider}",kind="confirmed",cause=""\\} [1-9]`))
  assert.match(metrics, /postern_reports_total\{source="resend",kind="bounced",cause="relay_suppressed"\} 1\n/)
  assert.match(metrics, /postern_reports_unmatched_total\{source="sendgrid"\} 59[89]\n/)
  assert.match(metrics, /postern_reports_unmatched_total\{source="brevo"\} 0\n/)
  const log = service.log.join('')
  assert.match(log, /"source":"postmark","finding":"bounced","cause":"no_mailbox","result":"recorded"/)
  assert.doesNotMatch(log, /@example|"level":"error"/)
})
