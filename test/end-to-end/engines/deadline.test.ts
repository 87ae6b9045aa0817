/** A relay that promises to return what it cannot deliver in time gets the seconds left (RFC 2852). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../../src/domain/id.ts'
import type { EmailAddress } from '../../../src/domain/request/email-address.ts'
import { writeReport } from '../../support/reports.ts'
import { relayTo, startTestService, validBody } from '../../support/service.ts'
import { startScriptedServer } from '../../support/smtp.ts'
import { handReport } from '../../support/smtp-dialogue.ts'
import { eventually } from '../../support/wait.ts'

const minuteMs = 60_000

for (const [keyword, refusal, lives] of [
  ['DELIVERBY 600', null, ['', / BY=[78]\d\d;R$/]],
  ['DELIVERBY', null, [/ BY=2\d\d;R$/, / BY=[78]\d\d;R$/]],
  ['SIZE', null, ['', '']],
  ['DELIVERBY', '501 5.5.4 no such parameter', ['', '']],
] as const)
  test(`a relay that lists ${keyword}${refusal === null ? '' : ' and refuses it'}: both emails are sent, one of 5 and one of 15 minutes`, async (t) => {
    const relay = await startScriptedServer(t, {
      ehlo: `250-scripted\r\n250 ${keyword}`,
      mail: () => (relay.transcript.at(-1)?.includes('BY=') && refusal !== null ? refusal : '250 2.1.0 ok'),
    })
    const service = await startTestService(t, { relays: [relayTo(relay.port, { returnsLate: true })] })
    for (const [n, life] of [5, 15].entries()) {
      const expiresAt = new Date(service.store.now() + life * minuteMs - 1000).toISOString()
      const answer = await service.post(validBody({ to: `ada${n}@example.com`, expiresAt }))
      const id = answer.headers.get('email-id') as EmailId
      await eventually(async () => (await service.store.findEmail(id))?.state === 'delivered')
      const asked = relay.transcript.filter((line) => line.startsWith('MAIL')).at(-1) ?? ''
      const expected = lives[n] ?? ''
      if (expected === '') assert.doesNotMatch(asked, /BY=/)
      else assert.match(asked, expected)
      assert.equal((await service.store.findEmail(id))?.trail.length, 1, 'one attempt')
    }
  })

test('the relay’s report that it gave up is recorded with its cause, and suppresses nobody', async (t) => {
  const relay = await startScriptedServer(t, { ehlo: '250-scripted\r\n250 DELIVERBY' })
  const service = await startTestService(t, {
    relays: [relayTo(relay.port, { returnsLate: true })],
    bounceAddress: 'bounces@bounce.acme.test' as EmailAddress,
    bounce: { address: { host: '127.0.0.1', port: 0 }, tls: null },
  })
  const answer = await service.post(validBody({ to: 'ada@example.com' }))
  const id = answer.headers.get('email-id') as EmailId
  await eventually(async () => (await service.store.findEmail(id))?.state === 'delivered')
  const to = /<(.*?)>/.exec(relay.transcript.find((line) => line.startsWith('MAIL')) ?? '')?.[1] ?? ''
  const report = writeReport({ to, recipient: 'ada@example.com', reply: '451 4.2.1 busy', status: '5.4.7' })
  assert.match(await handReport(Number(new URL(service.urls.bounce ?? '').port), { to, report }), /^250/)
  const email = await service.store.findEmail(id)
  assert.deepEqual([email?.state, email?.reason], ['bounced', 'expired_at_relay'])
  assert.deepEqual((await service.store.listSuppressions({ apps: [service.app.id], limit: 10 })).items, [])
})
