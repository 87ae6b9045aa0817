import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import type { AttemptRecorded, PosternEvent, RequestAnswered } from './events.ts'
import { logEvents } from './log.ts'

const request: RequestAnswered = {
  kind: 'request_answered',
  source: 'api',
  message: null,
  requestId: 'req_1',
  status: 403,
  code: 'url_not_allowed',
  issues: [],
  appId: null,
  keyId: null,
  origin: null,
  recipient: null,
  tookMs: 1,
  traceId: null,
}

const attempt: AttemptRecorded = {
  kind: 'attempt_recorded',
  emailId: 'em_1' as EmailId,
  appId: 'app_1' as AppId,
  type: 'magic_link',
  attempt: 1,
  outcome: { kind: 'unattempted', relay: 'r:25', reply: parseReply('421 busy'), waitMs: 0 },
  sinceAcceptedMs: 5,
  traceId: null,
  tookMs: 1,
}

function newSubject(level = 'debug') {
  const clock = { ms: 0 }
  const lines: Record<string, unknown>[] = []
  const log = pino({ level, base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  return { clock, lines, emit: logEvents(log, () => clock.ms) as (event: PosternEvent) => void }
}

test('of one kind 20 lines a second are written, and the next one says how many were left out', () => {
  const { clock, lines, emit } = newSubject()
  for (let n = 0; n < 50; n++) emit(request)
  assert.equal(lines.length, 20)
  emit({ ...request, code: 'invalid_url' })
  assert.equal(lines.length, 21, 'another kind is bounded by itself')
  clock.ms = 999
  emit(request)
  assert.equal(lines.length, 21)
  clock.ms = 1000
  emit(request)
  assert.equal(lines.at(-1)?.leftOut, 31)
  emit(request)
  assert.equal(lines.at(-1)?.leftOut, undefined)
})

test('an email that was not tried is for the level debug only', () => {
  const { lines, emit } = newSubject('info')
  emit(attempt)
  assert.equal(lines.length, 0)
  const delivered = { kind: 'delivered', relay: 'r:25', reply: parseReply('250 ok') } as const
  emit({ ...attempt, outcome: delivered })
  assert.equal(lines.at(-1)?.reply, '250 ok')
})

test('trouble is never left out', () => {
  const { lines, emit } = newSubject()
  for (let n = 0; n < 30; n++) emit({ kind: 'bug', doing: 'testing', error: new Error('x') })
  assert.equal(lines.length, 30)
})

const ended = (count: number, app: string) =>
  Array.from({ length: count }, (_, n) => ({
    emailId: `em_${n}` as EmailId,
    appId: app as AppId,
    state: 'expired' as const,
    reason: null,
  }))

test('each email that ended by itself has a line, many at once have one for each app, and a storm is bounded', () => {
  const { lines, emit } = newSubject()
  emit({ kind: 'emails_ended', ended: ended(3, 'app_1') })
  assert.deepEqual(
    lines.map(({ email }) => email),
    ['em_0', 'em_1', 'em_2'],
  )
  emit({ kind: 'emails_ended', ended: [...ended(15, 'app_1'), ...ended(9, 'app_2')] })
  assert.deepEqual(
    lines.slice(3).map(({ app, count }) => [app, count]),
    [
      ['app_1', 15],
      ['app_2', 9],
    ],
  )
  for (let n = 0; n < 50; n++) emit({ kind: 'emails_ended', ended: ended(20, 'app_1') })
  assert.equal(lines.length, 20)
})

const [emailId, appId] = ['em_1' as EmailId, 'app_1' as AppId]
const endOf = (state: 'expired' | 'cancelled' | 'suppressed') => ({
  ...({ kind: 'emails_ended', ended: [{ emailId, appId, state, reason: null }] } as const),
})
const said: [PosternEvent, level: string, text: RegExp][] = [
  [{ kind: 'relay_changed', relay: 'r:25', available: true, reason: '' }, 'warn', /available again/],
  [{ kind: 'relay_in_clear', relay: 'r:25' }, 'warn', /can open every link/],
  [{ kind: 'relay_changed', relay: 'r:25', available: false, reason: 'x' }, 'error', /is unavailable/],
  [{ kind: 'backpressure_changed', active: true }, 'warn', /^backpressure: requests wait/],
  [{ kind: 'backpressure_changed', active: false }, 'warn', /has ended/],
  [{ kind: 'standby_changed', standby: true }, 'warn', /another process sends/],
  [{ kind: 'standby_changed', standby: false }, 'warn', /took over sending/],
  [{ kind: 'session_changed', available: true }, 'warn', /has its database session back/],
  [{ kind: 'session_changed', available: false }, 'warn', /has no database session/],
  [endOf('expired'), 'warn', /ended without being sent: expired/],
  [endOf('cancelled'), 'info', /cancelled/],
  [endOf('suppressed'), 'info', /suppressed/],
  [request, 'info', /refused/],
  [{ kind: 'console_sign_in', method: 'code', result: 'signed_in', requestId: 'r' }, 'info', /signed in/],
  [{ kind: 'console_sign_in', method: 'code', result: 'refused', requestId: 'r' }, 'warn', /was refused/],
]
for (const [event, level, text] of said)
  test(`${event.kind} is logged at ${level}: ${text.source}`, () => {
    const { lines, emit } = newSubject()
    emit(event)
    assert.equal(lines.length, 1)
    assert.equal(lines[0]?.level, pino.levels.values[level])
    assert.match(String(lines[0]?.msg), text)
  })

test('a fault of ours is logged with the id of the request that it answered', () => {
  const { lines, emit } = newSubject()
  emit({ kind: 'bug', doing: 'testing', error: new Error('x'), requestId: 'req_1' })
  emit({ kind: 'bug', doing: 'testing', error: new Error('x') })
  assert.deepEqual(
    lines.map((line) => [line.requestId, 'requestId' in line]),
    [
      ['req_1', true],
      [undefined, false],
    ],
  )
})

test('emails that lost two leases have a line of their own, and only those', () => {
  const { lines, emit } = newSubject()
  const lost = [1, 2, 3].map((count) => ({ emailId: `em_${count}` as EmailId, count }))
  emit({ kind: 'leases_taken_back', lost })
  assert.deepEqual(
    lines.map(({ level, email, count, suspects }) => [level, email ?? count, suspects]),
    [
      [pino.levels.values.warn, 3, 2],
      [pino.levels.values.error, 'em_2', undefined],
      [pino.levels.values.error, 'em_3', undefined],
    ],
  )
})
