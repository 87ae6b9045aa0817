/** Recipients whose mailbox does not exist: the relay or a report says so, and later mail is not sent. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { newAcme, posternJson, serveEnvironment, serveHere } from '../support/cli.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const refusals: Readonly<Record<string, string>> = {
  'gone@example.com': '550 5.1.1 no such user here',
  'full@example.com': '552 5.2.2 the mailbox is full',
  'banned@example.com': '550 5.7.1 we do not like you',
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
  // The strike is written a moment after the outcome.
  await eventually(async () => {
    const { state, reason, attempts } = await waitForEnd(await post('gone@example.com'))
    assert.deepEqual([reason, attempts], state === 'failed' ? ['refused_by_relay', 1] : ['no_mailbox', 0])
    return state === 'suppressed'
  })
  for (const to of ['full@example.com', 'banned@example.com', 'other@example.com']) {
    const second = await waitForEnd(await post(to))
    assert.deepEqual(
      [second.state, second.attempts],
      [to === 'other@example.com' ? 'delivered' : 'failed', 1],
    )
  }
})
