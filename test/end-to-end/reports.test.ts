/** Reports about emails, from the relay that gave them up to the record that an operator reads. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type EmailId, newId } from '../../src/domain/id.ts'
import { newToken } from '../../src/domain/operator/management-token.ts'
import type { EmailDetail } from '../../src/management/emails/emails.ts'
import { newAcme, postern, posternJson, serveEnvironment, serveHere } from '../support/cli.ts'
import { basicHeader } from '../support/provider-calls.ts'
import { writeReport } from '../support/reports.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const relay = await startSmtpServer({ after })
const credentials = 'postern:0123456789abcdef'
const env = {
  ...(await serveEnvironment({ after })),
  POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
  POSTERN_BOUNCE_ADDRESS: 'bounces@bounce.acme.test',
  POSTERN_REPORTS_LISTEN: '127.0.0.1:0',
  POSTERN_REPORTS_KEYS: `basic:${credentials}`,
}
const key = await newAcme(env)
const { urls } = await serveHere({ after }, env)

/** A delivered email: its id, and the sender of its envelope. */
async function deliver(to: string): Promise<{ id: EmailId; bounceAddress: string }> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await send(`${urls.api}/v1/email`, JSON.stringify(validBody({ to })), headers)
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  await eventually(async () => (await show(id)).state === 'delivered')
  const received = relay.received.find(({ raw }) => raw.includes(id))
  return { id, bounceAddress: received?.from ?? '' }
}

const show = (id: string) => posternJson<EmailDetail>(env, ['email', 'show', id])
const read = (report: string, ...options: string[]) => postern(env, ['report', 'read', ...options], { input: report })

test('a report is explained without a change, then recorded, and the record of the email tells it', async () => {
  const { id, bounceAddress } = await deliver('ada@example.com')
  const report = writeReport({ to: bounceAddress, recipient: 'ada@example.com' })
  const dry = await read(report, '--dry-run')
  assert.equal(dry.code, 0, dry.err)
  assert.match(
    dry.out,
    /^It would be recorded: the email would be bounced\. Its recipient would be suppressed for a while\.\n\nreport +bounced, in fields\nabout +recipient\ncause +no_mailbox\nreply +550 5\.1\.1 /,
  )
  assert.equal((await show(id)).state, 'delivered')
  const recorded = await read(report)
  assert.match(
    recorded.out,
    /^It is recorded: the email is now bounced\. Its recipient is suppressed until 20\S+Z\.\n[\s\S]*its state +bounced\n/,
  )
  const { explanation, reason, state, trail } = await show(id)
  assert.deepEqual([state, reason], ['bounced', 'no_mailbox'])
  assert.match(explanation, /Then it bounced: the mailbox does not exist \(550 5\.1\.1 /)
  assert.deepEqual(
    trail.map(({ outcome, source }) => [outcome, source]),
    [
      ['delivered', undefined],
      ['bounced', 'read'],
    ],
  )
  const again = await read(report)
  assert.equal(again.code, 0)
  assert.match(again.out, /^The record of the email has a report like this, so nothing changes\./)
  const usage = await postern(env, ['usage', 'acme'])
  assert.match(usage.out, /bounced/)
  const audit = await posternJson<{ action: string; target: string }[]>(env, ['audit', '--action', 'report.read'])
  assert.ok(audit.some(({ target }) => target === id))
})

type ReportStatus = {
  bounceAddress: string | null
  bounceListener: string | null
  bounced: Record<string, number>
  complained: number
  lastAt: string | null
}

test('report status counts reports once, also those of a command on the server, and knows the last', async () => {
  const read7Days = () => posternJson<ReportStatus>(env, ['report', 'status'])
  const before = await read7Days()
  assert.deepEqual([before.bounceAddress, before.bounceListener], ['bounces@bounce.acme.test', null])
  const { bounceAddress } = await deliver('flo@example.com')
  const report = writeReport({ to: bounceAddress, recipient: 'flo@example.com' })
  for (let n = 0; n < 2; n++) assert.equal((await read(report)).code, 0)
  const count = ({ bounced }: ReportStatus) => bounced.no_mailbox ?? 0
  // The service writes its counts a moment later.
  const status = await eventually(async () => {
    const now = await read7Days()
    return count(now) > count(before) ? now : null
  })
  assert.equal(count(status), count(before) + 1)
  assert.ok(Math.abs(Date.now() - Date.parse(status.lastAt ?? '')) < 120_000)
  const { out } = await postern(env, ['report', 'status'])
  assert.match(out, /^bounce address +bounces@bounce\.acme\.test\nbounce listener +not configured here /)
  assert.match(out, /last 7 days +\d+ bounced, \d+ complaints?\ncauses +\d+ × no_mailbox/)
})

test('a forward that fails is recorded as such; another email is left alone', async () => {
  const [one, two] = [await deliver('bea@example.com'), await deliver('cleo@example.com')]
  const ran = await read(writeReport({ to: one.bounceAddress, recipient: 'elsewhere@example.org' }))
  assert.match(ran.out, /about +other\n/)
  assert.deepEqual([(await show(one.id)).state, (await show(two.id)).state], ['bounced', 'delivered'])
})

test('a report names its email by the address that it was sent to alone, from a file', async (t) => {
  const { id, bounceAddress } = await deliver('dora@example.com')
  const file = join(temporaryFolder(t), 'report.eml')
  writeFileSync(file, writeReport({ to: 'someone@acme.test', recipient: 'dora@example.com' }))
  const unmatched = await postern(env, ['report', 'read', file])
  assert.equal(unmatched.code, 1)
  assert.match(unmatched.out, /^The report names no email of this service\. If you know the address/)
  const matched = await postern(env, ['report', 'read', file, '--recipient', bounceAddress.toUpperCase()])
  assert.equal(matched.code, 0, matched.err)
  assert.equal((await show(id)).state, 'bounced')
})

test('a forged reference, a vacation reply, nothing and nonsense change nothing, and each is named', async () => {
  const { id, bounceAddress } = await deliver('ella@example.com')
  const forged = bounceAddress.replace(/.{10}@/, '0123456789@')
  assert.match((await read(writeReport({ to: forged, recipient: 'ella@example.com' }))).out, /names no email/)
  const other = bounceAddress.replace(id, newId('em', Date.now()))
  assert.match((await read(writeReport({ to: other, recipient: 'ella@example.com' }))).out, /names no email/)
  const vacation = `From: ella@example.com\nTo: ${bounceAddress}\nSubject: Out of office\nAuto-Submitted: auto-replied\n\nI am away.\n`
  const away = await read(vacation)
  assert.equal(away.code, 1)
  assert.match(away.out, /neither a bounce nor a complaint/)
  assert.match((await read('')).err, /the report is empty/)
  const nonsense = await read(`\0${'"\u{1f600}\r\n'.repeat(100_000)}`)
  assert.deepEqual([nonsense.code, nonsense.err.includes('not recorded')], [1, true])
  assert.match((await postern(env, ['report', 'read', '/nowhere/report.eml'])).err, /cannot read \/nowhere/)
  assert.equal((await show(id)).state, 'delivered')
})

test('a complaint, and the word that it is no spam', async () => {
  const { id, bounceAddress } = await deliver('fay@example.com')
  const complaint = (type: string) =>
    `From: fbl@example.com\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n--b\nContent-Type: message/feedback-report\n\nFeedback-Type: ${type}\nUser-Agent: x/1\nVersion: 1\n\n--b\nContent-Type: text/rfc822-headers\n\nX-Entity-Ref-ID: ${/\+(.*)@/.exec(bounceAddress)?.[1]}\n--b--\n`
  assert.match((await read(complaint('abuse'))).out, /the email is now complained/)
  assert.match((await show(id)).explanation, /Its recipient reported it as spam/)
  await read(complaint('not-spam'))
  assert.equal((await show(id)).state, 'delivered')
})

test('a webhook is recorded; status and doctor say where they come in, and when the source was last heard', async () => {
  const { id, bounceAddress } = await deliver('gus@example.com')
  const reference = /\+(.*)@/.exec(bounceAddress)?.[1] ?? ''
  const reply = '550 5.1.1 gus@example.com is unknown; see https://help.example.com/4711'
  const answer = await fetch(`${urls.reports}/reports/generic`, {
    method: 'POST',
    headers: basicHeader(credentials),
    body: JSON.stringify({ reference, kind: 'bounced', recipient: 'gus@example.com', reply }),
  })
  assert.equal(answer.status, 200)
  const { explanation, state, trail } = await show(id)
  assert.equal(state, 'bounced')
  assert.match(explanation, /the mailbox does not exist \(550 5\.1\.1 <address> is unknown; see <link>; a report/)
  assert.deepEqual(trail.at(-1)?.source, 'generic')
  const status = await postern(env, ['report', 'status'])
  assert.match(
    status.out,
    /reports listener +127\.0\.0\.1:0\naccepts calls of +postmark, mailgun, brevo, generic\nlast reports +generic 20\S+ \S+ \(\d+ m?s ago\), read 20/,
  )
  const doctor = await postern(env, ['doctor'])
  assert.match(
    doctor.out,
    /^ok {4}reports: the reports listener is on 127\.0\.0\.1:0, for postmark, mailgun, brevo, generic; last reports: generic \d+ m?s ago, read/m,
  )
  assert.doesNotMatch(status.out + doctor.out, /0123456789abcdef/)
})

test('the exit code tells programs that deliver mail to keep a report that may count later', async (t) => {
  const queueing = { ...(await serveEnvironment(t)), POSTERN_ROLES: 'api' }
  const headers = { authorization: `Bearer ${await newAcme(queueing)}` }
  const service = await serveHere(t, queueing)
  const answer = await send(`${service.urls.api}/v1/email`, JSON.stringify(validBody()), headers)
  const reference = service.store.makeReference((answer.headers.get('email-id') ?? '') as EmailId)
  const report = writeReport({ to: `b+${reference}@acme.test`, recipient: 'ada@example.com' })
  const ran = await postern(queueing, ['report', 'read'], { input: report })
  assert.match(ran.out, /^The email is still in the queue/)
  assert.equal(ran.code, 75)
  const tokenFile = join(temporaryFolder(t), 'token')
  writeFileSync(tokenFile, newToken(), { mode: 0o600 })
  const nowhere = { POSTERN_URL: 'http://127.0.0.1:1', POSTERN_TOKEN_FILE: tokenFile }
  const lost = await postern(nowhere, ['report', 'read'], { input: report })
  assert.match(lost.err, /127\.0\.0\.1:1/)
  assert.equal(lost.code, 75)
  assert.equal((await postern(nowhere, ['report', 'read', '--recipent', 'x'], { input: report })).code, 2)
})
