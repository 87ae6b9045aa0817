/** Messages of Postern, signed by another implementation of Standard Webhooks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { readWebhook } from '../src/webhook.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const old = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const data = {
  emailId: 'em_1',
  emailType: 'magic_link',
  to: 'ana@example.com',
  cause: 'no_mailbox',
  permanent: true,
}
const message = { type: 'email.bounced', timestamp: '2026-11-21T17:06:09.000Z', data }

function signed(body: string, { by = [secret], at = new Date(), sent = body } = {}): Request {
  const signatures = by.map((each) => new Webhook(each).sign('wh_1', at, body))
  return new Request('https://app.acme.test/postern', {
    method: 'POST',
    body: sent,
    headers: {
      'webhook-id': 'wh_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signatures.join(' '),
    },
  })
}

const refused = { name: 'PosternError', code: 'invalid_webhook' }

test('a message that is signed by the secret is read, with its id', async () => {
  const body = JSON.stringify(message)
  assert.deepEqual(await readWebhook(secret, signed(body)), { ...message, id: 'wh_1' })
  assert.equal((await readWebhook(secret, signed(body, { by: [old, secret] }))).type, 'email.bounced')
  assert.equal((await readWebhook(`${old}|${secret}`, signed(body))).type, 'email.bounced')
})

test('another secret, an old request and a changed body are refused', async () => {
  const body = JSON.stringify(message)
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const wrong = [
    signed(body, { by: [old] }),
    signed(body, { at: minutesAgo(6) }),
    signed(body, { at: minutesAgo(-6) }),
    signed(body, { sent: body.replace('ana@', 'eve@') }),
    signed(body, { sent: JSON.stringify(message, null, 1) }),
    signed(body, { sent: '' }),
    new Request('https://app.acme.test/postern', { method: 'POST', body }),
    new Request('https://app.acme.test/postern', { method: 'POST' }),
  ]
  for (const request of wrong) await assert.rejects(readWebhook(secret, request), refused)
  await assert.rejects(readWebhook('whsec_c2hvcnQ=', signed(body)), { code: 'invalid_config' })
})

test('a body without an end is not read to it', async () => {
  let [sent, cancelled] = [0, false]
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += 1024
      controller.enqueue(new Uint8Array(1024).fill(97))
    },
    cancel: () => {
      cancelled = true
    },
  })
  const request = new Request('https://app.acme.test/postern', {
    method: 'POST',
    body,
    duplex: 'half',
  } as RequestInit)
  await assert.rejects(readWebhook(secret, request), refused)
  assert.ok(cancelled && sent < 65_536)
})
