/**
 * Hostile bodies from a caller that has the secret: every answer is 200, or says that it is no JSON.
 * POSTERN_FUZZ sets how many each provider sends (500).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { close, listen } from '../../src/web/http/listener.ts'
import { newReportsListener } from '../../src/web/reports/reports-listener.ts'
import { randomFrom } from '../support/generator.ts'
import { countStatuses, spoilJson } from '../support/hostile-json.ts'
import {
  type Caller,
  callers,
  newSecrets,
  prove,
  readKeys,
  readPayload,
  signBody,
  writeKeys,
} from '../support/provider-calls.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const bodiesPerProvider = Number(process.env.POSTERN_FUZZ ?? 500)
const secrets = newSecrets()
const reports = { address: { host: '127.0.0.1', port: 0 }, keys: readKeys(writeKeys(secrets)) }
const relay = await startSmtpServer({ after })
const service = await startTestService({ after }, { relays: [relayTo(relay.port)], reports })
const { store } = service

const values = [
  ...['"<>"', '"<@>"', '"https://x/?token=y"', '"em_"', '"5.1.1"', '"550 5.1.1"', '{"toString":1}'],
  ...[`"${'550 5.1.1 '.repeat(500)}"`, `"${'em_'.repeat(2000)}"`, `"${'<'.repeat(999)}"`],
]

const names = (provider: Caller): string[] =>
  readdirSync(new URL(`../corpus/provider-calls/${provider}/`, import.meta.url)).map((name) =>
    name.replace('.json', ''),
  )

const post = async (provider: Caller, text: string) => {
  const headers = prove(provider, secrets, { text, atMs: store.now() })
  const answer = await fetch(`${service.urls.reports}/reports/${provider}`, {
    method: 'POST',
    headers,
    body: text,
  })
  return { status: answer.status, text: await answer.text() }
}

for (const [n, provider] of callers.entries())
  test(`${provider}: ${bodiesPerProvider} hostile bodies, and no answer of 500`, async (t) => {
    const id = ((await service.post(validBody({ to: `${provider}@acme.test` }))).headers.get('email-id') ??
      '') as EmailId
    await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
    const email = { reference: store.makeReference(id), to: `${provider}@acme.test` }
    const random = randomFrom(n + 1)
    const samples = names(provider).map((name) => {
      const payload = readPayload(provider, name, email)
      return JSON.stringify(provider === 'mailgun' ? signBody(payload, secrets, store.now()) : payload)
    })
    const bodies = Array.from({ length: bodiesPerProvider }, () =>
      spoilJson(samples[Math.floor(random() * samples.length)] ?? '', random, values),
    )
    const statuses = await countStatuses(bodies, async (body) => {
      const { status } = await post(provider, body)
      // The signature of Mailgun is in the body, and may be what was replaced.
      const isExpected = status === 200 || status === 400 || (provider === 'mailgun' && status === 401)
      assert.ok(isExpected, `${status} ${body}`)
      return status
    })
    t.diagnostic(JSON.stringify(statuses))
    assert.ok((statuses[200] ?? 0) > bodiesPerProvider / 3)
    assert.ok(!service.log.some((line) => line.includes('"level":"error"')))
    for (const { reply } of (await store.findEmail(id))?.trail ?? [])
      assert.doesNotMatch(reply?.text ?? '', /acme\.test|\p{Cc}/u)
  })

const full = (text: string) => text.repeat(Math.ceil((1024 * 1024 - 200) / text.length)).slice(0, 1024 * 1024 - 200)
const worst: Readonly<Record<string, string>> = {
  'beginnings of references': JSON.stringify({ kind: 'bounced', reply: full('em_') }),
  'almost references': JSON.stringify({
    kind: 'bounced',
    note: full('em_01k9zc3v7mabcdefghjkmnpqrs.01234567!'),
  }),
  'a long reply': JSON.stringify({ kind: 'bounced', reply: full('5.1.1. ') }),
  'many events': `[${full('{"kind":"bounced"},').replace(/,?[^,]*$/, '')}]`,
  'many values': `[${full('1,').replace(/,$/, '')}]`,
  'deep nesting': full('['),
  'many fields': `{${Array.from({ length: 80_000 }, (_, n) => `"${n}":[]`).join(',')}}`,
}

for (const [name, text] of Object.entries(worst))
  test(`1 MiB of ${name} is answered`, async () => {
    const answer = await post('generic', text)
    assert.equal(answer.status, name === 'deep nesting' ? 400 : 200, answer.text)
    assert.equal((await fetch(`${service.urls.ops}/livez`)).status, 200)
  })

test('126 connections may be open, each with a body that is not whole; more are closed unanswered', async (t) => {
  const { keys } = reports
  const listener = newReportsListener({
    ...{ store, keys, emit: () => {}, sealRecipient: () => '', isStopping: () => false },
  })
  t.after(() => close(listener, 0))
  const at = new URL(await listen(listener, reports.address))
  const open = async () => {
    const socket = connect(Number(at.port), at.hostname)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {}) // it is closed by the other side
    await once(socket, 'connect')
    socket.write('POST /reports/generic HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n{')
    return { socket, closed }
  }
  let begun = 0
  listener.server.on('request', () => void begun++)
  const held = await Promise.all(Array.from({ length: 126 }, open))
  await eventually(() => begun === 126) // until then, a connection is idle
  const { closed, socket } = await open()
  await closed
  assert.equal(socket.bytesRead, 0)
  assert.ok(held.every((each) => !each.socket.destroyed))
  for (const each of held) each.socket.destroy()
  await eventually(() => fetch(new URL('/reports/generic', at)).catch(() => null))
})
