/** The answer to a request does not tell whether its recipient is suppressed. */
import assert from 'node:assert/strict'
import { Agent, type IncomingMessage, request } from 'node:http'
import { after, test } from 'node:test'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { emailTypes } from '../../src/domain/request/email-kinds.ts'
import { listEmails, operator } from '../support/operator.ts'
import { startTestService, testSettings, validBody } from '../support/service.ts'

const limits = { ...testSettings.limits, recipientPerHour: 10_000 }
const settings = { limits, supersede: false }
const service = await startTestService({ after }, { roles: new Set(['api'] as const), settings })
const suppressed = 'ada@example.com'
const other = 'bob@example.com'
const pairs = 1000
const beganMs = Date.now()
const locales = [undefined, 'de', 'pt-BR', 'xx', undefined, 'ar'] // `xx` is no language

const agent = new Agent({ keepAlive: true, maxSockets: 20 })
after(() => agent.destroy())

/** All that a client sees: status, headers as they came, body; without the date and ids. */
async function post(body: object, headers: Readonly<Record<string, string>>) {
  const authorization = `Bearer ${service.key}`
  const options = {
    method: 'POST',
    agent,
    headers: { ...headers, authorization, 'content-type': 'application/json' },
  }
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    request(service.apiUrl, options, resolve).on('error', reject).end(JSON.stringify(body)),
  )
  const text = (await answer.toArray()).join('')
  const id = String(answer.headers['email-id'])
  const seen = answer.rawHeaders.map((part, n) => (answer.rawHeaders[n - 1]?.toLowerCase() === 'date' ? 'DATE' : part))
  return { id, answer: [answer.statusCode, ...seen, text].map((part) => String(part).replaceAll(id, 'ID')) }
}

test(`${pairs} pairs of answers, for a suppressed recipient and for another, are the same but for date and Email-Id`, async () => {
  const recipient = service.store.nameRecipient(suppressed as EmailAddress)
  const until = service.store.now() + 3_600_000
  await service.store.setSuppression({ app: null, recipient, destination: 'other', until }, operator)
  const kinds = Array.from({ length: pairs / 2 }, (_, kind) => kind)
  await Promise.all(kinds.map(askTwice))
  const states = (await listEmails(service.store, { limit: 2 * pairs })).map(({ state }) => state)
  const count = (state: string) => states.filter((known) => known === state).length
  const replays = kinds.filter(isRepeated).length
  assert.deepEqual([count('suppressed'), count('queued')], [pairs - replays, pairs - replays])
})

const isRepeated = (kind: number): boolean => kind % 4 === 0

/** Two pairs of the same requests; the second is a replay if they have an idempotency key. */
async function askTwice(kind: number): Promise<void> {
  const type = emailTypes[kind % emailTypes.length]
  const locale = locales[kind % locales.length]
  const body = (to: string) => ({
    ...validBody({ to, type }, beganMs),
    ...(type === 'organisation_invite' && { organisationName: 'Acme' }),
    ...(kind % 3 === 0 && { code: '246813' }),
    ...(locale !== undefined && { locale }),
  })
  const headers = (to: string): Record<string, string> =>
    isRepeated(kind) ? { 'idempotency-key': `${to}-${kind}` } : {}
  for (const name of ['first', 'second']) {
    const asked = [suppressed, other].map((to) => post(body(to), headers(to)))
    const [one, two] = await Promise.all(asked)
    assert.equal(one?.answer[0], '202', name)
    assert.deepEqual(one?.answer, two?.answer)
    assert.notEqual(one?.id, two?.id)
  }
}
