/**
 * Generated requests against `postern serve`: no 500, no crash, no growth, and no link queued that
 * breaks the rules as read by the WHATWG URL parser. POSTERN_FUZZ sets the number of requests
 * (40,000), POSTERN_TEST_SEED repeats a run.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { startServe } from '../support/cli.ts'
import { randomBody, randomFrom } from '../support/generator.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'

const total = Number(process.env.POSTERN_FUZZ ?? 40_000)
const seed = Number(process.env.POSTERN_TEST_SEED ?? Date.now() % 1_000_000)

type Answer = { status: number; text: string }

/** Checks a queued link against spec 2.3 with a URL parser that is not ours. */
function assertWithinRules(body: Buffer): void {
  const { url } = JSON.parse(body.toString('utf8')) as { url: string }
  const { protocol, host, searchParams } = new URL(url)
  assert.ok(protocol === 'https:', url)
  assert.equal(host, 'app.acme.test', url)
  assert.deepEqual([...searchParams.keys()], ['token'], url)
  assert.notEqual(searchParams.get('token')?.trim(), '', url)
}

test(`row 49: ${total} generated requests: no 500, no crash, no growth, nothing queued that breaks the rules`, async (t) => {
  t.diagnostic(`POSTERN_TEST_SEED=${seed}`)
  const relay = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_LOG_LEVEL: 'error',
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  atEnd(t, () => agent.destroy())
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }
  const post = (body: Buffer) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = request(`${server.api}/v1/email`, { method: 'POST', agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  const residentMiB = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1024

  const random = randomFrom(seed)
  const counts = new Map<number, number>()
  let serial = 0
  const client = async () => {
    while (serial < total) {
      const body = randomBody(random, serial++)
      const { status, text } = await post(body)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      assert.ok([202, 400, 403, 429, 503].includes(status), `${status}: ${text}`)
      const answer = JSON.parse(text) as { ok: boolean; error?: { code: string; message: string } }
      assert.equal(answer.ok, status === 202)
      if (status === 202) assertWithinRules(body)
      else assert.ok(answer.error?.code && answer.error.message)
    }
  }
  await Promise.all(Array.from({ length: 32 }, client))
  t.diagnostic(`answers: ${JSON.stringify(Object.fromEntries(counts))}; resident ${Math.round(residentMiB())} MiB`)
  assert.equal(server.child.exitCode, null)
  assert.ok(residentMiB() < 400)
  assert.ok((counts.get(202) ?? 0) > total / 10 && (counts.get(400) ?? 0) > total / 10)
})
