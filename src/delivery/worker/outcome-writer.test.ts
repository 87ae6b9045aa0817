import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testSettings } from '../../../test/support/service.ts'
import type { DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import { parseReply } from '../../domain/delivery/smtp-reply.ts'
import { newId } from '../../domain/id.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import type { PosternEvent } from '../../observe/events.ts'
import { type Claim, StoreUnavailable } from '../../store/store.ts'
import type { Attempt } from '../deliver.ts'
import { OutcomeWriter } from './outcome-writer.ts'

const address = parseEmailAddress('ada@example.com', 'to')
assert.ok(address.ok)
const to = address.value
const appId = newId('app', 0)
const claim: Claim = {
  emailId: newId('em', 0),
  fence: 1,
  appId,
  type: 'magic_link',
  content: { to, url: 'https://app.acme.test/?token=x', messageIdDomain: 'acme.test' },
  acceptedAt: 0,
  expiresAt: 900_000,
  attempt: 1,
  lifeLeftMs: 900_000,
  ageMs: 0,
  traceparent: null,
  isSuspect: false,
}
const moment = { monotonicMs: 0, wallMs: 0 }

/** An attempt at an email of an app that is sent webhooks, or (without an address) of one that is not. */
const newAttempt = (webhookUrl?: string): Attempt => ({
  claim,
  app: {
    ...{ id: appId, slug: 'acme', version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
    settings: { ...testSettings, ...(webhookUrl !== undefined && { webhookUrl }) },
  },
  claimedAt: moment,
  leasedAt: moment,
  areLeasesValid: () => true,
})

test('an outage of the store is one event, the next outage is another', () => {
  const seen: PosternEvent['kind'][] = []
  let failures = 0
  const writer = new OutcomeWriter({
    store: {
      recordOutcome: () => assert.fail('nothing is written'),
      strikeRefused: () => assert.fail('nobody is struck'),
    },
    onTrouble: () => assert.fail('no email failed'),
    emit: ({ kind }) => void seen.push(kind),
    onFailure: () => void failures++,
  })
  const down = new StoreUnavailable('down')
  for (let n = 0; n < 3; n++) writer.noteFailure(down)
  assert.deepEqual([seen, failures], [['store_write_failed'], 3])
  writer.noteSuccess()
  writer.noteFailure(down)
  assert.deepEqual(seen, ['store_write_failed', 'store_write_failed'])
  writer.noteFailure(new TypeError('a bug'))
  assert.equal(seen.at(-1), 'bug', 'any other error is a bug, each time')
})

test('an email that failed is said of an app that is sent webhooks, and of no other', async () => {
  const failed: unknown[] = []
  const writer = new OutcomeWriter({
    store: { recordOutcome: async () => true, strikeRefused: () => assert.fail('nobody is struck') },
    onTrouble: async (event, { emailId }, facts) => void failed.push([event, emailId, facts]),
    emit: () => {},
    onFailure: assert.fail,
  })
  const write = (outcome: DeliveryOutcome, webhookUrl?: string) =>
    writer.write({ attempt: newAttempt(webhookUrl), outcome, endedAtMs: 0, tookMs: 0 })
  const refused = parseReply('550 5.7.1 spam')
  const outcome = { kind: 'failed', reply: refused, relay: 'r:25', reason: 'refused_by_relay' } as const
  const webhookUrl = 'https://app.acme.test/'
  await write(outcome)
  await write({ kind: 'delivered', reply: parseReply('250 ok'), relay: 'r:25' }, webhookUrl)
  await write(outcome, webhookUrl)
  await write({ ...outcome, reason: 'retries_exhausted' }, webhookUrl)
  await writer.whenFollowed()
  assert.deepEqual(failed, [
    ['email.failed', claim.emailId, { cause: 'policy' }],
    ['email.failed', claim.emailId, { cause: 'retries_exhausted' }],
  ])
})

test('eight strikes are written at a time; while they are, further refusals strike nobody', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  let strikes = 0
  const writer = new OutcomeWriter({
    store: {
      recordOutcome: async () => true,
      strikeRefused: async () => {
        strikes++
        await answered
        return { kind: 'none' }
      },
    },
    onTrouble: () => assert.fail('the app is sent no webhooks'),
    emit: () => {},
    onFailure: assert.fail,
  })
  const reply = parseReply('550 5.1.1 no such mailbox')
  const outcome = { kind: 'failed', reply, relay: 'r:25', reason: 'refused_by_relay' } as const
  const refuse = () => writer.write({ attempt: newAttempt(), outcome, endedAtMs: 0, tookMs: 0 })
  for (let n = 0; n < 10; n++) await refuse()
  assert.equal(strikes, 8)
  answer()
  await writer.whenFollowed()
  await refuse()
  assert.equal(strikes, 9)
})
