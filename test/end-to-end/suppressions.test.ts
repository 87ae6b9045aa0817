/** Recipients whose mailbox does not exist: the relay or a report says so, and later mail is not sent. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { newAcme, postern, posternJson, serveEnvironment, serveHere } from '../support/cli.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const refusals: Readonly<Record<string, string>> = {
  'gone@example.com': '550 5.1.1 no such user here',
  'full@example.com': '552 5.2.2 the mailbox is full',
  'banned@example.com': '550 5.7.1 <banned@example.com>: Recipient address rejected: Access denied',
}
const relay = await startSmtpServer(
  { after },
  {
    onRcptTo({ address }, _session, callback) {
      const refusal = refusals[address]
      if (refusal === undefined) return callback()
      const responseCode = Number(refusal.slice(0, 3))
      callback(Object.assign(new Error(refusal.slice(4)), { responseCode }))
    },
  },
)
const env = { ...(await serveEnvironment({ after })), POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` }
const key = await newAcme(env)
const { urls } = await serveHere({ after }, env)

async function post(to: string): Promise<EmailId> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await send(`${urls.api}/v1/email`, JSON.stringify(validBody({ to })), headers)
  assert.equal(answer.status, 202)
  return (answer.headers.get('email-id') ?? '') as EmailId
}

type Shown = { readonly state: string; readonly reason: string | null; readonly attempts: number }

const waitForEnd = async (id: EmailId): Promise<Shown> =>
  await eventually(async () => {
    const shown = await posternJson<Shown>(env, ['email', 'show', id])
    return ['queued', 'sending', 'deferred'].includes(shown.state) ? null : shown
  })

test('an address that a relay calls missing gets no second attempt; a full mailbox and a refusal of policy do', async () => {
  for (const to of Object.keys(refusals)) {
    const first = await waitForEnd(await post(to))
    assert.deepEqual([first.state, first.reason, first.attempts], ['failed', 'refused_by_relay', 1], to)
  }
  const find = (to: string) => posternJson<{ app: string | null }[]>(env, ['suppression', 'find', to])
  // The strike is written a moment after the outcome.
  await eventually(async () => (await find('gone@example.com')).length === 1)
  const { state, reason, attempts } = await waitForEnd(await post('gone@example.com'))
  assert.deepEqual([state, reason, attempts], ['suppressed', 'no_mailbox', 0])
  for (const to of ['full@example.com', 'banned@example.com', 'other@example.com']) {
    const second = await waitForEnd(await post(to))
    assert.deepEqual([second.state, second.attempts], [to === 'other@example.com' ? 'delivered' : 'failed', 1])
  }
})

test('an operator asks why an address gets no mail, and lifts it', async () => {
  const first = await waitForEnd(await post('gone@example.com'))
  assert.equal(first.state, 'suppressed')
  const found = await postern(env, ['suppression', 'find', 'gone@example.com'])
  assert.match(found.out, /^sp_\w{18} +acme +no_mailbox /m)
  assert.match(found.out, /"postern suppression remove ID" ends one\.\n$/)
  const emails = await postern(env, ['email', 'list', '--to', 'gone@example.com'])
  const words =
    /This address is suppressed for mail of acme \(no_mailbox\) until .*\n"postern suppression remove (sp_\w{26})" ends/
  const [, id = ''] = words.exec(emails.out) ?? []
  assert.notEqual(id, '', emails.out)
  const tried = await postern(env, ['send-test', 'gone@example.com', '--app', 'acme'])
  assert.equal(tried.code, 1)
  assert.match(tried.out, /Not sent: its recipient was suppressed, because a mail server had said that the mailbox/)
  assert.match(tried.out, /Its recipient is suppressed until .*, since the email em_\w+ \(550 5\.1\.1/)
  assert.equal((await postern(env, ['suppression', 'remove', id])).code, 0)
  assert.match((await postern(env, ['suppression', 'remove', id])).err, /There is no suppression "sp_/)
  assert.equal((await waitForEnd(await post('gone@example.com'))).state, 'failed', 'it is tried again')
})

test('suppressions are added for an app or all apps, listed and cleared, never without a filter or a yes', async () => {
  const run = (...args: string[]) => postern(env, ['suppression', ...args])
  assert.match((await run('add', 'x@gmail.com')).err, /give --app APP or --all-apps/)
  assert.match((await run('add', 'x@gmail.com', '--app', 'acme', '--days', '0')).err, /--days is a whole number/)
  assert.match((await run('add', 'x', '--all-apps')).err, /to: /)
  const made = await run('add', 'x@gmail.com', '--all-apps', '--days', '3')
  assert.match(made.out, /^sp_\w{26}: suppressed until /)
  await run('add', 'y@example.com', '--app', 'acme')
  const list = await run('list', '--reason', 'operator')
  assert.match(list.out, /sp_\w+ +acme +operator .* other[\s\S]*sp_\w+ +all +operator .* gmail/)
  assert.equal((await waitForEnd(await post('x@gmail.com'))).reason, 'operator')
  assert.match((await run('clear')).err, /give at least one filter/)
  assert.match((await run('clear', '--reason', 'operator')).err, /nothing was cleared: add --yes/)
  assert.match((await run('list', '--destination', 'gmail')).out, / all /)
  assert.equal((await run('clear', '--destination', 'gmail', '--yes')).out, '1 suppression cleared\n')
  assert.equal((await run('clear', '--to', '1h', '--yes')).out, '0 suppressions cleared\n')
})
