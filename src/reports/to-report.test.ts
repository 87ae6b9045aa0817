/** Every payload of `test/corpus/provider-calls`, and the finding about Ada's email. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Caller, callers } from '../../test/support/provider-calls.ts'
import { findReferences } from '../domain/delivery/reference.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { type JsonFields, toFields } from '../services/json-fields.ts'
import { findEventService } from '../services/services.ts'
import { toReport } from './record-events.ts'
import { judgeReport } from './record-report.ts'

const folder = new URL('../../test/corpus/provider-calls/', import.meta.url)
const reference = 'em_01k9zc3v7mabcdefghjkmnpqrs.0123456789'

const readFile = (provider: Caller, name: string): unknown =>
  JSON.parse(readFileSync(new URL(`${provider}/${name}.json`, folder), 'utf8'))

function judge(provider: Caller, event: JsonFields, to = 'ada@example.com') {
  const described = findEventService(provider)?.events.read(event) ?? null
  if (described === null) return null
  const report = toReport(described)
  const references = findReferences(JSON.stringify(event))
  const isRecipient = (address: EmailAddress) => address === to
  return judgeReport({ ...report, form: 'fields', references }, isRecipient)
}

/** Such as `bounced recipient permanent no_mailbox`. */
function describe(provider: Caller, event: JsonFields, to?: string): string {
  const finding = judge(provider, event, to)
  if (finding === null) return 'nothing'
  if (finding.kind !== 'bounced') return finding.kind
  const { about, cause, permanent } = finding
  return `bounced ${about} ${permanent ? 'permanent' : 'temporary'} ${cause}`
}

const expected: Readonly<Record<Caller, Readonly<Record<string, string>>>> = {
  postmark: {
    bounce: 'bounced recipient permanent no_mailbox',
    'bounce-unsubscribe': 'nothing',
    delivery: 'confirmed',
    open: 'nothing',
    click: 'nothing',
    'spam-complaint': 'complained',
    inbound: 'nothing',
    unsubscribe: 'nothing',
    resubscribe: 'nothing',
    'suppressed-after-bounce': 'nothing',
  },
  resend: {
    sent: 'nothing',
    scheduled: 'nothing',
    delivered: 'confirmed',
    'hard-bounce': 'bounced recipient permanent unknown',
    full: 'bounced recipient temporary mailbox_full',
    'bounce-suppressed': 'bounced recipient permanent relay_suppressed',
    suppressed: 'bounced recipient permanent relay_suppressed',
    failed: 'bounced recipient permanent unknown',
    delayed: 'delayed',
    complained: 'complained',
    opened: 'nothing',
    clicked: 'nothing',
    contact: 'nothing',
    'suppression-added': 'nothing',
  },
  sendgrid: {
    processed: 'nothing',
    delivered: 'confirmed',
    'dropped-invalid': 'bounced recipient permanent relay_suppressed',
    'dropped-bounced': 'bounced recipient permanent relay_suppressed',
    'dropped-unsubscribed': 'bounced recipient permanent relay_suppressed',
    bounce: 'bounced recipient permanent no_mailbox',
    'bounce-full': 'bounced recipient temporary mailbox_full',
    blocked: 'bounced recipient temporary policy',
    deferred: 'delayed',
    open: 'nothing',
    click: 'nothing',
    spamreport: 'complained',
    unsubscribe: 'nothing',
    'group-unsubscribe': 'nothing',
    'kept-message-id': 'confirmed',
  },
  mailgun: {
    delivered: 'confirmed',
    'failed-permanent': 'bounced recipient permanent no_mailbox',
    'failed-suppressed': 'bounced recipient permanent relay_suppressed',
    'failed-old': 'bounced recipient permanent unknown',
    'failed-temporary': 'delayed',
    'failed-greylisted': 'delayed',
    rejected: 'nothing',
    complained: 'complained',
    unsubscribed: 'nothing',
    opened: 'nothing',
    clicked: 'nothing',
    accepted: 'nothing',
  },
  brevo: {
    request: 'nothing',
    delivered: 'confirmed',
    'hard-bounce': 'bounced recipient permanent no_mailbox',
    'hard-bounce-gone': 'bounced recipient permanent no_mailbox',
    'soft-bounce': 'bounced recipient temporary unknown',
    blocked: 'bounced recipient permanent relay_suppressed',
    spam: 'complained',
    complaint: 'complained',
    'invalid-email': 'bounced recipient permanent unknown',
    error: 'nothing',
    deferred: 'delayed',
    opened: 'nothing',
    'unique-opened': 'nothing',
    'proxy-open': 'nothing',
    'unique-proxy-open': 'nothing',
    unsubscribe: 'nothing',
    click: 'nothing',
    inbound: 'nothing',
    batch: 'confirmed, nothing',
  },
  generic: {
    bounced: 'bounced recipient permanent no_mailbox',
    'bounced-by-words': 'bounced recipient permanent no_mailbox',
    'bounced-alone': 'bounced unknown temporary unknown',
    delayed: 'delayed',
    complained: 'complained',
    'not-spam': 'not_spam',
    confirmed: 'confirmed',
    other: 'nothing',
  },
}

for (const provider of callers)
  test(`${provider}: the finding of every event`, () => {
    const names = readdirSync(new URL(`${provider}/`, folder)).map((name) => name.replace('.json', ''))
    assert.deepEqual(names.toSorted(), Object.keys(expected[provider]).toSorted())
    for (const [name, finding] of Object.entries(expected[provider])) {
      const events = [readFile(provider, name)].flat().map(toFields)
      assert.equal(events.map((event) => describe(provider, event)).join(', '), finding, name)
      for (const event of events)
        if (describe(provider, event) !== 'nothing')
          assert.deepEqual(findReferences(JSON.stringify(event)), [reference], name)
    }
  })

test('a reply is recorded without addresses and links', () => {
  const replies = {
    postmark: 'bounce',
    sendgrid: 'bounce',
    mailgun: 'failed-permanent',
    brevo: 'hard-bounce-gone',
    generic: 'bounced',
  } as const
  for (const [provider, name] of Object.entries(replies) as [keyof typeof replies, string][]) {
    const [event] = [readFile(provider, name)].flat()
    const finding = judge(provider, toFields(event))
    assert.ok(finding?.kind === 'bounced', provider)
    assert.deepEqual([finding.reply.code, finding.reply.enhanced], [550, '5.1.1'], provider)
    assert.match(finding.reply.text, /^(RecipientError: )?550 5\.1\.1 .*does not exist.*<link>/, provider)
    assert.doesNotMatch(finding.reply.text, /ada|token|4711/, provider)
  }
})

test('an event about another address says nothing of the email, but that it was passed on and failed there', () => {
  const other = 'bob@example.com'
  const of = (provider: Caller, name: string) => toFields([readFile(provider, name)].flat()[0])
  assert.equal(describe('postmark', of('postmark', 'bounce'), other), 'bounced other permanent no_mailbox')
  assert.equal(describe('sendgrid', of('sendgrid', 'delivered'), other), 'other')
  assert.equal(describe('mailgun', of('mailgun', 'complained'), other), 'other')
  const named = toFields(of('resend', 'delivered').data)
  const event = { type: 'email.delivered', data: { ...named, to: ['Ada <ada@example.com>'] } }
  assert.equal(describe('resend', event), 'confirmed')
})

const bounce = (Type: string, Details = '') =>
  describe('postmark', { ...toFields(readFile('postmark', 'bounce')), Type, Details, Description: '' })

test('Postmark: the types of a bounce', () => {
  const types = {
    HardBounce: 'bounced recipient permanent no_mailbox',
    BadEmailAddress: 'bounced recipient permanent no_mailbox',
    SoftBounce: 'bounced recipient temporary unknown',
    SMTPApiError: 'bounced recipient permanent unknown',
    Blocked: 'bounced recipient permanent policy',
    DMARCPolicy: 'bounced recipient permanent policy',
    SpamNotification: 'bounced recipient permanent policy',
    VirusNotification: 'bounced recipient permanent policy',
    ManuallyDeactivated: 'bounced recipient permanent relay_suppressed',
    Transient: 'delayed',
    DnsError: 'delayed',
  }
  for (const [type, finding] of Object.entries(types)) assert.equal(bounce(type), finding, type)
  const silent =
    'Unsubscribe Subscribe AutoResponder AddressChange OpenRelayTest Unknown ChallengeVerification Unconfirmed InboundError TemplateRenderingFailed ManualSuppression constructor'
  for (const type of silent.split(' ')) assert.equal(bounce(type), 'nothing', type)
  assert.equal(bounce('HardBounce', 'smtp;550 5.7.1 blocked by policy'), 'bounced recipient permanent policy')
  assert.equal(bounce('HardBounce', 'smtp;450 4.1.1 try later'), 'bounced recipient temporary no_mailbox')
  assert.equal(bounce('SoftBounce', 'smtp;550 5.1.1 gone'), 'bounced recipient temporary no_mailbox')
  assert.equal(bounce('Blocked', 'smtp;550 5.1.1 gone'), 'bounced recipient permanent policy')
  assert.equal(
    bounce('SMTPApiError', 'You tried to send to a recipient that has been marked as inactive.'),
    'bounced recipient permanent relay_suppressed',
  )
})

test('fields of other types than expected are as if they were missing', () => {
  const values: unknown[] = [null, 1, true, '', 'x', [], {}, [[]], { toString: 1 }, '\ud800', 'x'.repeat(100_000)]
  const spoil = (value: unknown, by: unknown, depth = 0): unknown[] => {
    if (typeof value !== 'object' || value === null || depth > 3) return [by]
    return Object.keys(value).flatMap((key) => {
      const inner = (value as Record<string, unknown>)[key]
      return spoil(inner, by, depth + 1).map((spoilt) =>
        Array.isArray(value) ? [spoilt] : { ...value, [key]: spoilt },
      )
    })
  }
  for (const provider of callers)
    for (const name of Object.keys(expected[provider]))
      for (const value of values)
        for (const event of spoil([readFile(provider, name)].flat()[0], value)) {
          const finding = judge(provider, toFields(event))
          if (finding !== null && 'reply' in finding) assert.ok(finding.reply.text.length <= 300)
        }
})

test('a reply quotes nothing of the email', () => {
  const reply = '550 5.1.1 ada: links.acme.test/acme/AbC9dEf0GhI1jKl2MnO3 has 246813'
  const event = { ...toFields(readFile('generic', 'bounced')), recipient: 'Ada <ada@example.com>', reply }
  const finding = judge('generic', event)
  assert.ok(finding?.kind === 'bounced')
  assert.equal(finding.reply.text, '550 5.1.1 <address>: <link> has <number>')
})
