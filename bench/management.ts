/**
 * Lists and searches of the management API with 1,000,000 records (`POSTERN_BENCH_EMAILS`) and 100,000 queued
 * emails, at one reader; and accepting while four clients list and search without pause, each with a token of
 * its own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { hashToken, newToken } from '../src/domain/operator/management-token.ts'
import { operator } from '../test/support/operator.ts'
import type { Scope } from '../test/support/temporary.ts'
import { fillHistory, records } from './history.ts'
import { type LoopResult, percentile } from './loop.ts'
import { comparedTable, count, median, report, type Table } from './measure.ts'
import {
  type Bed,
  type BenchedService,
  engines,
  fill,
  makeBed,
  startLoader,
  startPostern,
  subjectOf,
  useStore,
} from './processes.ts'

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
    tables[`Accepting ${load.rate} a second on ${engine}, while ${readers} clients read`] = besideTable(beside)
    measured[engine] = { lists, counting, beside }
  }
  report('management', tables, measured)
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
      await store.summariseQueue()
      times.push(performance.now() - begunMs)
    }
    return median(times.slice(1))
  })

type Beside = Readonly<Record<'alone' | 'beside' | 'apart', LoopResult[]>> & { readonly asked: number }

/**
 * In turns: without readers, with readers of the same process, and with readers of a process for operators
 * alone.
 */
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

const besideTable = ({ alone, beside, apart }: Beside): Table =>
  comparedTable([
    ['alone', alone],
    ['they read from the same process', beside],
    ['they read from a console process', apart],
  ])
