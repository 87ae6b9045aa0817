/**
 * Lists and searches of the management API with 1,000,000 records (`POSTERN_BENCH_EMAILS`) and 100,000 queued emails, at one
 * reader; and accepting while four clients list and search without pause, each with a token of its own.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { hashToken, newToken } from '../src/domain/management-token.ts'
import { operator } from '../test/support/operator.ts'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { type LoopResult, percentile } from './loop.ts'
import { count, median, report, type Table } from './measure.ts'
import {
  type Bed,
  type BenchedService,
  type Engine,
  engines,
  fill,
  makeBed,
  startLoader,
  startPostern,
  subjectOf,
  useStore,
} from './processes.ts'

const records = Number(process.env.POSTERN_BENCH_EMAILS ?? 1_000_000)
const queued = Math.min(100_000, records)
const goes = 25
/** Between two requests of a list, so that none waits for the rate of its token. */
const pauseMs = 100
const load = { clients: 64, ms: 5000, rate: 1000 }
const rounds = 5
const readers = 4
/** Until the readers have used what their tokens allow at once. */
const settleMs = 1500

export async function run(scope: Scope): Promise<void> {
  const loader = startLoader(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    await fill(bed, queued)
    await fillHistory(engine, bed)
    const anyPort = { POSTERN_CONSOLE_LISTEN: '127.0.0.1:0' }
    const service = await startPostern(scope, bed, { ...anyPort, POSTERN_ROLES: 'api,console' })
    const apart = await startPostern(scope, bed, { ...anyPort, POSTERN_ROLES: 'console' })
    const lists = await measureLists(service, bed)
    const counting = await measureCount(bed)
    const beside = await measureBeside({ service, apart }, bed, loader)
    tables[`Lists with ${count(records)} records on ${engine}`] = listTable(lists, counting)
    tables[`Accepting ${load.rate} a second on ${engine}, while ${readers} clients read`] =
      besideTable(beside)
    measured[engine] = { lists, counting, beside }
  }
  report('management', tables, measured)
}

// Two of a hundred records failed, and one expired. One app sent ten emails in all.
const spread = {
  rare: 10,
  columns: `email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at, expires_at,
    finished_at, recipient, trail, trace`,
  trail:
    '[{"at":1760000000000,"outcome":"delivered","relay":"smtp.example.com:587","reply":{"code":250,"enhanced":"2.0.0","text":"250 2.0.0 Ok: queued"}}]',
}

/** Fills `history` by SQL: through the queue it would take an hour. */
async function fillHistory(engine: Engine, bed: Bed): Promise<void> {
  const places = await useStore(bed, async (store) => {
    const apps = await store.listApps()
    const keys = await Promise.all(apps.map(({ id }) => store.listKeys(id)))
    return apps.map(({ id }, index) => ({ app: id, key: keys[index]?.[0]?.id ?? '' }))
  })
  const [quiet, ...busy] = places
  if (quiet === undefined) throw new Error('the bed has no apps')
  const app = { busy: busy.map((place) => place.app), quiet: quiet.app }
  const key = { busy: busy.map((place) => place.key), quiet: quiet.key }
  const url = bed.env.POSTERN_DATABASE_URL ?? ''
  if (engine === 'SQLite') fillSqlite(url.slice('sqlite:'.length), app, key)
  else await fillPostgres(url, app, key)
}

type Names = { readonly busy: readonly string[]; readonly quiet: string }

/** An id that sorts by `n`, before the ids of now. */
const idOf = (n: number): string => `em_01000${n.toString(32).padStart(21, '0')}`

function fillSqlite(path: string, app: Names, key: Names): void {
  const database = new DatabaseSync(path)
  database.exec('pragma busy_timeout = 10000')
  const insert = database.prepare(
    `insert into history (${spread.columns}) values (?, ?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, null)`,
  )
  const begunAt = Date.now() - 86_400_000 * 20
  database.exec('begin')
  for (let n = 0; n < records; n++) {
    const { appId, keyId, type, state, reason, at, recipient } = rowOf(n, app, key, begunAt)
    insert.run(
      idOf(n),
      appId,
      keyId,
      type,
      state,
      reason,
      at,
      at + 900_000,
      at + 300,
      recipient,
      spread.trail,
    )
  }
  database.exec('commit; analyze')
  database.close()
}

const types = ['magic_link', 'email_verification', 'password_reset', 'organisation_invite'] as const

function rowOf(n: number, app: Names, key: Names, begunAt: number) {
  const isQuiet = n % Math.floor(records / spread.rare) === 0
  const place = n % app.busy.length
  const state = n % 50 === 0 ? 'failed' : n % 101 === 0 ? 'expired' : 'delivered'
  return {
    appId: isQuiet ? app.quiet : (app.busy[place] ?? ''),
    keyId: isQuiet ? key.quiet : (key.busy[place] ?? ''),
    type: types[n % 3] ?? types[0],
    state,
    reason: state === 'failed' ? 'refused_by_relay' : null,
    at: begunAt + n,
    recipient: `recipient-${n % 200_000}-${'x'.repeat(24)}`,
  }
}

async function fillPostgres(url: string, app: Names, key: Names): Promise<void> {
  const step = 50_000
  const begunAt = Date.now() - 86_400_000 * 20
  for (let from = 0; from < records; from += step) {
    const rows = Array.from({ length: Math.min(step, records - from) }, (_, index) => {
      const n = from + index
      const { appId, keyId, type, state, reason, at, recipient } = rowOf(n, app, key, begunAt)
      return { email_id: idOf(n), app_id: appId, key_id: keyId, type, state, reason, at, recipient }
    })
    const text = `insert into postern.history (${spread.columns})
      select email_id, app_id, key_id, type, state, reason, 1, 0, at, at + 900000, at + 300, recipient,
        '${spread.trail}', null
      from jsonb_to_recordset($json$${JSON.stringify(rows)}$json$) as r(email_id text, app_id text, key_id text,
        type text, state text, reason text, at bigint, recipient text)`
    await runSql(url, text)
  }
  await runSql(url, 'analyze postern.history')
  await runSql(url, 'vacuum postern.history')
}

type Timed = { readonly name: string; readonly p50Ms: number; readonly maxMs: number }

const mayAsk = 86_400_000

/** Tokens in turn, because each has its rate. */
async function newTokens(bed: Bed, howMany: number): Promise<string[]> {
  return useStore(bed, async (store) => {
    const tokens: string[] = []
    for (let n = 0; n < howMany; n++) {
      const token = newToken()
      const name = `bench ${n} ${token.slice(-6)}`
      const wanted = { hash: hashToken(token), name, role: 'admin', apps: null } as const
      await store.createToken({ ...wanted, expiresAt: store.now() + mayAsk }, operator)
      tokens.push(token)
    }
    return tokens
  })
}

type Request = { readonly name: string; readonly path: string; readonly body?: object }

/** The lists and searches. */
async function requestsFor(bed: Bed): Promise<Request[]> {
  const [quiet, busy, key] = await useStore(bed, async (store) => {
    const [first, second] = await store.listApps()
    if (first === undefined || second === undefined) throw new Error('the bed has no apps')
    return [first.slug, second.slug, (await store.listKeys(first.id))[0]?.id ?? '']
  })
  return [
    { name: 'all emails', path: '/v1/emails' },
    { name: 'of a busy app', path: `/v1/emails?app=${busy}` },
    { name: 'of a quiet app', path: `/v1/emails?app=${quiet}` },
    { name: 'failed', path: '/v1/emails?state=failed' },
    { name: 'expired, of a busy app', path: `/v1/emails?state=expired&app=${busy}` },
    { name: 'deferred (there are none)', path: '/v1/emails?state=deferred' },
    { name: 'of one key', path: `/v1/emails?key=${key}` },
    { name: 'of a type nobody sends', path: '/v1/emails?type=organisation_invite' },
    { name: 'to one recipient', path: `/v1/emails?recipient=rc_recipient-7-${'x'.repeat(24)}` },
    { name: 'found by address', path: '/v1/emails/find', body: { to: 'queued7@example.com' } },
    { name: '200 of all emails', path: '/v1/emails?limit=200' },
    { name: 'audit', path: '/v1/audit' },
    { name: 'audit by a name', path: '/v1/audit?actor=nobody' },
    { name: '100 apps', path: '/v1/apps?limit=100' },
    { name: 'keys of an app', path: `/v1/apps/${busy}/keys` },
    { name: 'usage of an app', path: `/v1/apps/${busy}/usage` },
    { name: 'queue', path: '/v1/queue' },
    { name: 'status', path: '/v1/status' },
  ]
}

async function ask(service: BenchedService, token: string, { path, body }: Request): Promise<number> {
  const response = await fetch(`${service.console}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  await response.arrayBuffer()
  return response.status
}

async function measureLists(service: BenchedService, bed: Bed): Promise<Timed[]> {
  const timed: Timed[] = []
  for (const request of await requestsFor(bed)) {
    const [token = ''] = await newTokens(bed, 1)
    const times: number[] = []
    for (let n = 0; n < goes; n++) {
      const begunMs = performance.now()
      const status = await ask(service, token, request)
      if (status !== 200) throw new Error(`${request.path} answered ${status}`)
      times.push(performance.now() - begunMs)
      await sleep(pauseMs)
    }
    times.shift() // the first one opens connections and compiles statements
    timed.push({ name: request.name, p50Ms: percentile(times, 0.5), maxMs: Math.max(...times) })
  }
  return timed
}

/** The count by app itself, which the API shares among those who ask. */
const measureCount = (bed: Bed): Promise<number> =>
  useStore(bed, async (store) => {
    const times: number[] = []
    for (let n = 0; n < 6; n++) {
      const begunMs = performance.now()
      await store.queueSummary()
      times.push(performance.now() - begunMs)
    }
    return median(times.slice(1))
  })

type Beside = Readonly<Record<'alone' | 'beside' | 'apart', LoopResult[]>> & { readonly asked: number }

/** In turns: without readers, with readers of the same process, and with readers of a process for operators alone. */
async function measureBeside(
  { service, apart }: Readonly<Record<'service' | 'apart', BenchedService>>,
  bed: Bed,
  loader: ReturnType<typeof startLoader>,
): Promise<Beside> {
  const requests = await requestsFor(bed)
  const tokens = await newTokens(bed, readers)
  const results: Beside = { alone: [], beside: [], apart: [], asked: 0 }
  let [serial, asked] = [700_000_000, 0]
  const read = async (from: BenchedService, work: () => Promise<LoopResult>): Promise<LoopResult> => {
    const state = { reading: true }
    const reading = tokens.map(async (token, reader) => {
      for (let n = reader; state.reading; n++) {
        await ask(from, token, requests[n % requests.length] as Request)
        asked += 1
      }
    })
    await sleep(settleMs)
    const result = await work()
    state.reading = false
    await Promise.all(reading)
    return result
  }
  const offer = () => {
    serial += 10_100_003 // new recipients in each round
    return loader({ ports: [service.port], keys: bed.keys, ...load, serial })
  }
  for (let round = 0; round < rounds; round++) {
    results.alone.push(await offer())
    results.beside.push(await read(service, offer))
    results.apart.push(await read(apart, offer))
  }
  return { ...results, asked }
}

const listTable = (lists: readonly Timed[], counting: number): Table => ({
  columns: ['list', 'p50 ms', 'max ms'],
  rows: [
    ...lists.map(({ name, p50Ms, maxMs }) => [name, p50Ms.toFixed(1), maxMs.toFixed(1)]),
    [`count of ${count(queued)} queued by app`, counting.toFixed(1), ''],
  ],
})

function besideTable({ alone, beside, apart }: Beside): Table {
  const base = median(alone.map(({ p99Ms }) => p99Ms))
  const row = (name: string, results: readonly LoopResult[]) => {
    const p99 = median(results.map(({ p99Ms }) => p99Ms))
    return [
      name,
      count(median(results.map(({ perSecond }) => perSecond))),
      median(results.map(({ p50Ms }) => p50Ms)).toFixed(2),
      p99.toFixed(2),
      (p99 / base).toFixed(2),
      results.map(({ p99Ms }) => p99Ms.toFixed(1)).join(', '),
    ]
  }
  return {
    columns: ['accepting', 'a second', 'p50 ms', 'p99 ms', 'ratio', 'p99 of the rounds'],
    rows: [
      row('alone', alone),
      row('they read the same process', beside),
      row('they read a process with the role console', apart),
    ],
  }
}
