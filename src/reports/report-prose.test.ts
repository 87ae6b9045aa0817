import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readProse } from './report-prose.ts'

/** The rows of a mail, whose header is read as `readReport` reads it. */
function prose(header: Readonly<Record<string, string>>, ...body: string[]) {
  const text = [...Object.entries(header).map(([name, value]) => `${name}: ${value}`), '', ...body].join('\n')
  return readProse(new Map(Object.entries(header)), text, [])
}
const daemon = { from: 'MAILER-DAEMON@mx.example.com', subject: 'failure notice' }

test('the reply that a report quotes is read, wherever it stands', () => {
  for (const before of [[], ['Hi. This is the qmail-send program.', '']]) {
    const [row] = prose(daemon, ...before, '552 5.2.2 Mailbox full', '', 'This is a failure, said a second time.')
    assert.deepEqual([row?.action, row?.cause], ['failed', 'mailbox_full'], before.join())
  }
})

test('an automatic reply of a person is no report, though its sender is empty', () => {
  const body = 'My last trip failed, so I am back on Monday.'
  const reply = { 'return-path': '<>', from: 'ada@example.com' }
  for (const subject of ['Out of office', 'Automatic reply: Sign in', 'Auto-Reply'])
    assert.deepEqual(prose({ ...reply, subject }, body), [], subject)
  assert.deepEqual(prose({ ...reply, 'auto-submitted': 'auto-replied', subject: 'Sign in' }, body), [])
  assert.equal(prose({ ...reply, subject: 'Delivery failed' }, body).length, 1)
  assert.equal(prose({ ...daemon, 'auto-submitted': 'auto-replied' }, body).length, 1, 'a mail system says so')
})

test('a warning is no failure yet', () => {
  const [row] = prose(daemon, 'Warning message only. Delivery failed so far, and will be retried.')
  assert.equal(row?.action, 'delayed')
  assert.equal(prose({ ...daemon, subject: 'Warning: could not send' }, 'It failed so far.')[0]?.action, 'delayed')
})
