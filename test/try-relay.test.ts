/** `scripts/try-relay.ts` at servers that behave as the providers. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sendJson, startApiServer } from './support/api-server.ts'
import { startScriptedServer, startSmtpServer } from './support/smtp.ts'

const script = fileURLToPath(new URL('../scripts/try-relay.ts', import.meta.url))

async function tryRelay(...args: readonly string[]) {
  const child = spawn(process.execPath, [script, ...args])
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'close')
  return { code, said }
}

test('one email goes through the relay, and the report tells how, without recipient and secret', async (t) => {
  const server = await startSmtpServer(t)
  const bySmtp = await tryRelay(`smtp://127.0.0.1:${server.port}`, 'ada@example.com', 'auth@acme.test')
  assert.equal(bySmtp.code, 0, bySmtp.said)
  assert.match(bySmtp.said, /^result: delivered\..*\ntrail:\n {2}\{.*"reply":"250 /m)
  assert.deepEqual(server.received[0]?.to, ['ada@example.com'])

  const api = await startApiServer(t, (asked, response) =>
    JSON.parse(asked.body).html
      ? sendJson(response, 200, { id: 'r1' })
      : sendJson(response, 422, { name: 'missing_required_field' }),
  )
  const url = `resend://re_secret@api.resend.com?endpoint=${api.url}`
  const byApi = await tryRelay(url, 'ada@example.com', 'auth@acme.test')
  assert.equal(byApi.code, 0, byApi.said)
  assert.match(byApi.said, /200 accepted, id r1/)
  for (const { said } of [bySmtp, byApi]) assert.doesNotMatch(said, /ada@|re_secret/)
})

test('a relay that refuses, a sender that is missing, and a URL that is wrong are explained', async (t) => {
  const server = await startScriptedServer(t, { rcpt: '550 5.1.1 no such user' })
  const refused = await tryRelay(`smtp://127.0.0.1:${server.port}`, 'ada@example.com', 'auth@acme.test')
  assert.equal(refused.code, 1)
  assert.match(refused.said, /^result: failed\..*550 5\.1\.1/m)
  const missing = await tryRelay('smtp://127.0.0.1:1', 'ada@example.com')
  assert.deepEqual(missing, { code: 2, said: 'try-relay: name the sender as the third argument\n' })
  const wrong = await tryRelay('smtp://u:se/cret@host', 'ada@example.com')
  assert.equal(wrong.code, 2)
  assert.doesNotMatch(wrong.said, /cret/)
})
