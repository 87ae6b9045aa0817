import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hourMs, minuteMs } from '../duration.ts'
import { newId } from '../id.ts'
import { isWebhookUrl, waitAfterTries, writeWebhook } from './webhook.ts'

const at = Date.parse('2026-11-21T17:06:09Z')
const id = newId('wh', at)
const email = newId('em', at)

test('a message has the email, its recipient and what is known', () => {
  const facts = {
    ...({ emailType: 'magic_link', cause: 'no_mailbox', permanent: true } as const),
    suppressedUntil: '2026-11-21T18:06:09.000Z',
  }
  const bounced = writeWebhook({ id, event: 'email.bounced', email, facts, at }, 'ana@example.com')
  assert.deepEqual(JSON.parse(bounced), {
    type: 'email.bounced',
    timestamp: '2026-11-21T17:06:09.000Z',
    data: { emailId: email, to: 'ana@example.com', ...facts },
  })
  const complained = writeWebhook({ id, event: 'email.complained', email, facts: {}, at }, null)
  assert.deepEqual(JSON.parse(complained).data, { emailId: email })
  const tested = writeWebhook({ id, event: 'webhook.test', email: null, facts: {}, at }, null)
  assert.deepEqual(JSON.parse(tested).data, {})
})

test('a message is tried eight times in two days', () => {
  const waits = Array.from({ length: 9 }, (_, n) => waitAfterTries(n + 1))
  const hours = [2, 5, 10, 24].map((count) => count * hourMs)
  assert.deepEqual(waits, [5000, 5 * minuteMs, 30 * minuteMs, ...hours, null, null])
})

test('the address of a receiver is a URL without user and fragment', () => {
  for (const url of ['https://app.acme.test/postern', 'https://a.test:8443/x?y=1', 'http://app:3000/hooks'])
    assert.equal(isWebhookUrl(url), true, url)
  const others = [
    ...['https://', 'ftp://a.test/', 'https://me@a.test/', 'https://me:pw@a.test/', 'https://:pw@a.test/'],
    'https://a.test/#x',
    ...['https://a test/', '//a.test/', 'javascript:alert(1)', `https://a.test/${'x'.repeat(2000)}`],
  ]
  for (const url of others) assert.equal(isWebhookUrl(url), false, url)
})
