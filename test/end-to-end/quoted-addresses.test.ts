/** Addresses of Japanese carriers with two dots, which must be quoted: one mailbox has one address. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { readReport } from '../../src/reports/read-report.ts'
import { matchReport } from '../../src/reports/record-report.ts'
import { writeReport } from '../support/reports.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

test('an address that needs quotes is sent, reported and limited as one address', async (t) => {
  const relay = await startScriptedServer(t, {})
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const to = '"a..b"@docomo.ne.jp'
  const answer = await service.post(validBody({ to }, service.store.now()))
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  const raw = await eventually(() => relay.messages[0])
  assert.ok(relay.transcript.some((line) => line.startsWith(`RCPT TO:<${to}>`)))
  assert.match(raw, /^To: "a\.\.b"@docomo\.ne\.jp\r$/m)
  const id = answer.headers.get('email-id') as EmailId
  await eventually(async () => (await service.store.findEmail(id))?.state === 'delivered')
  const reference = service.store.makeReference(id)
  for (const recipient of [to, 'a..b@docomo.ne.jp', 'A..B@docomo.ne.jp', '<"a..b"@docomo.ne.jp>']) {
    const report = await readReport(Buffer.from(writeReport({ to: `b+${reference}@acme.test`, recipient })), null)
    const { finding } = await matchReport(service.store, report)
    assert.deepEqual(finding.kind === 'bounced' && finding.about, 'recipient', recipient)
  }
  for (const spelling of ['a..b@docomo.ne.jp', '"ab"@docomo.ne.jp'])
    assert.equal((await service.post(validBody({ to: spelling }, service.store.now()))).status, 400, spelling)
  assert.doesNotMatch(service.log.join(), /a\.\.b/i)
})
