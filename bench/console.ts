/**
 * The console: its pages with 1,000,000 records (`POSTERN_BENCH_EMAILS`) and 100,000 queued emails, at one
 * reader; and accepting beside ten open overviews, which listen to their streams and fetch themselves as
 * browsers do.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { hashSessionSecret, hashSignInCode, newSessionSecret, newSignInCode } from '../src/domain/operator/sign-in.ts'
import type { Store } from '../src/store/store.ts'
import { operator } from '../test/support/operator.ts'
import type { Scope } from '../test/support/temporary.ts'
import { fillHistory, records } from './history.ts'
import { HttpClient } from './http-client.ts'
import { type LoopResult, percentile } from './loop.ts'
import { comparedTable, count, report, type Table } from './measure.ts'
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
const people = 40
const load = { clients: 64, ms: 10_000, rate: 1000 }
/** Offered before each measurement: viewers open their pages in this time. */
const settleMs = 1500
const rounds = 12
const viewers = 10
const pagesPerSecond = 200
/** As the script of the pages does it. */
const fetchEveryMs = 2000

export async function run(scope: Scope): Promise<void> {
  const loader = startLoader(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    await fill(bed, queued)
    await fillHistory(engine, bed)
    const more = { POSTERN_CONSOLE_LISTEN: '127.0.0.1:0', POSTERN_ROLES: 'api,console' }
    const service = await startPostern(scope, bed, more)
    const cookies = await newSessions(bed)
    const pages = await measurePages(service, bed, cookies)
    const beside = await measureBeside(service, bed, { cookies, loader, paths: await pagesOf(bed) })
    tables[`Pages with ${count(records)} records on ${engine}`] = {
      columns: ['page', 'p50 ms', 'max ms'],
      rows: pages.map(({ path, p50Ms, maxMs }) => [path, p50Ms.toFixed(1), maxMs.toFixed(1)]),
    }
    tables[
      `Accepting ${load.rate} a second on ${engine}, beside ${viewers} open overviews, or ${pagesPerSecond} pages a second`
    ] = besideTable(beside)
    measured[engine] = { pages, beside }
  }
  report('console', tables, measured)
}

/** The cookies of admins, because each person has a rate. */
const newSessions = (bed: Bed): Promise<string[]> =>
  useStore(bed, (store) => Promise.all(Array.from({ length: people }, (_, n) => newSession(store, `bench ${n}`))))

async function newSession(store: Store, name: string): Promise<string> {
  const person = await store.createPerson({ name, role: 'admin', apps: null }, operator)
  if (person === 'name_taken') throw new Error('the person is there already')
  const hash = hashSignInCode(newSignInCode())
  await store.createSignInCode({ hash, person: person.id, expiresAt: store.now() + 60_000 }, operator)
  const secret = newSessionSecret()
  await store.signInByCode(hash, { hash: hashSessionSecret(secret), agent: 'bench', requestId: 'bench' })
  return `postern=${secret}`
}

async function pagesOf(bed: Bed): Promise<string[]> {
  const [slug, key, email] = await useStore(bed, async (store) => {
    const [, app] = await store.listApps()
    if (app === undefined) throw new Error('the bed has no apps')
    const [found] = (await store.listEmails({ app: app.id, limit: 1 })).items
    return [app.slug, (await store.listKeys(app.id))[0]?.id ?? '', found?.id ?? '']
  })
  const app = `/apps/${slug}`
  return [
    ...[
      '/',
      '/?range=24h',
      '/?range=7d',
      '/apps',
      app,
      `${app}/links`,
      `${app}/look`,
      `${app}/keys`,
      `${app}/settings`,
    ],
    ...[
      '/emails',
      `/emails?app=${slug}`,
      '/emails?state=expired',
      `/emails?app=${slug}&state=failed`,
      `/emails?key=${key}`,
    ],
    ...[
      `/emails/${email}`,
      '/delivery',
      '/audit',
      `/audit?app=${slug}`,
      '/settings',
      '/settings/people',
      '/settings/sessions',
    ],
  ]
}

type Timed = { readonly path: string; readonly p50Ms: number; readonly maxMs: number }

async function measurePages(service: BenchedService, bed: Bed, cookies: readonly string[]): Promise<Timed[]> {
  const timed: Timed[] = []
  let asked = 0
  for (const path of await pagesOf(bed)) {
    const times: number[] = []
    for (let n = 0; n <= goes; n++) {
      const cookie = cookies[asked++ % cookies.length] ?? ''
      const begunMs = performance.now()
      const response = await fetch(`${service.console}${path}`, { headers: { cookie }, redirect: 'manual' })
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
      times.push(performance.now() - begunMs)
    }
    times.shift() // the first one opens connections and compiles statements
    timed.push({
      path: path.replace(/(em|key)_\w+/, '$1_…'),
      p50Ms: percentile(times, 0.5),
      maxMs: Math.max(...times),
    })
  }
  return timed
}

/**
 * An overview that is open in a browser, until `signal`. Returns how often it fetched itself. It costs
 * little, because browsers use other processors than the service.
 */
async function view(address: string, cookie: string, signal: AbortSignal): Promise<number> {
  let fetched = 0
  let nextMs = 0
  const { host, port } = new URL(address)
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\n\r\n`
  const page = await HttpClient.open(Number(port))
  const fetchPage = async () => {
    const status = await page.ask(get('/'))
    if (status !== '200') throw new Error(`the overview answered ${status}`)
    fetched += 1
  }
  await fetchPage()
  const stream = connect(Number(port), '127.0.0.1')
  signal.addEventListener('abort', () => stream.destroy())
  try {
    stream.write(get('/live?topic=service'))
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (!chunk.includes('event: changed')) continue
      await sleep(Math.max(0, nextMs - performance.now()), undefined, { signal })
      nextMs = performance.now() + fetchEveryMs
      await fetchPage()
    }
    throw new Error('its stream ended')
  } catch (error) {
    if (!signal.aborted) throw new Error(`a viewer failed after ${fetched} pages`, { cause: error })
  }
  page.close()
  return fetched
}

/** Pages opened at a rate, one after the other of `pagesOf`, whether or not the one before is answered. */
async function openPages(address: string, { cookies, paths }: Readers, signal: AbortSignal): Promise<number> {
  const { host, port } = new URL(address)
  let opened = 0
  const read = async (reader: number) => {
    const client = await HttpClient.open(Number(port))
    const everyMs = (1000 * cookies.length) / pagesPerSecond
    let nextMs = performance.now() + (everyMs * reader) / cookies.length
    for (let n = reader; !signal.aborted; n++, nextMs += everyMs) {
      await sleep(Math.max(0, nextMs - performance.now()))
      const path = paths[n % paths.length]
      const status = await client.ask(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookies[reader]}\r\n\r\n`)
      if (status !== '200') throw new Error(`${path} answered ${status}`)
      opened += 1
    }
    client.close()
  }
  await Promise.all(cookies.map((_, reader) => read(reader)))
  return opened
}

/** "alone again" shows how far two measurements of the same differ. */
const situations = ['alone', 'beside', 'beside pages', 'alone again'] as const
type Situation = (typeof situations)[number]
type Beside = {
  readonly results: Readonly<Record<Situation, LoopResult[]>>
  readonly fetched: number
  readonly opened: number
}
type Readers = { readonly cookies: readonly string[]; readonly paths: readonly string[] }
type Visitors = Readers & { readonly loader: ReturnType<typeof startLoader> }

/** In turns, each round in another order, so that the machine's changes and the growing queue meet all. */
async function measureBeside(service: BenchedService, bed: Bed, { cookies, loader, paths }: Visitors): Promise<Beside> {
  const results: Beside['results'] = { alone: [], beside: [], 'beside pages': [], 'alone again': [] }
  let [serial, fetched, opened] = [600_000_000, 0, 0]
  const offer = (ms: number) => {
    const order = { ports: [service.port], keys: bed.keys, ...load, ms, serial }
    serial += (load.rate * ms) / 1000 // new recipients each time: they repeat after a million
    return loader(order)
  }
  const measure = async (situation: Situation) => {
    const stop = new AbortController()
    const viewing = situation === 'beside' ? cookies.slice(0, viewers) : []
    const open = viewing.map((cookie) => view(service.console, cookie, stop.signal))
    const opening = situation === 'beside pages' ? openPages(service.console, { cookies, paths }, stop.signal) : 0
    const measuring = offer(settleMs)
      .then(() => offer(load.ms))
      .finally(() => stop.abort())
    const [result, pages, read] = await Promise.all([measuring, Promise.all(open), opening])
    opened += read
    fetched += pages.reduce((sum, each) => sum + each, 0)
    return result
  }
  await measure('alone')
  for (let round = 0; round < rounds; round++)
    for (let turn = 0; turn < situations.length; turn++) {
      const situation = situations[(round + turn) % situations.length] ?? 'alone'
      results[situation].push(await measure(situation))
    }
  return { results, fetched, opened }
}

const besideTable = ({ results, fetched, opened }: Beside): Table =>
  comparedTable([
    ['alone', results.alone],
    [`beside (${count(fetched / rounds)} pages a round)`, results.beside],
    [`beside ${pagesPerSecond} pages a second (${count(opened / rounds)} a round)`, results['beside pages']],
    ['alone again', results['alone again']],
  ])
