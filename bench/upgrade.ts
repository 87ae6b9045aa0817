/**
 * An upgrade from the checkout in `POSTERN_BENCH_BEFORE`, with `POSTERN_BENCH_EMAILS` finished emails in the
 * database and a steady load. On PostgreSQL ten migrations are killed, and then three processes are replaced
 * one by one. On SQLite the process is stopped, and ten starts of the new one are killed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { eventually } from '../test/support/wait.ts'
import { fillHistory, records } from './history.ts'
import { monotonicMs } from './loop.ts'
import { count, report } from './measure.ts'
import {
  type Bed,
  type BenchedService,
  makeBed,
  programOf,
  type Sink,
  startPostern,
  startSink,
  subjectOf,
  subjects,
} from './processes.ts'

const perSecond = 300
const kills = 10
/** A command needs about this long to start. */
const startMs = 2000
/** Load before and after. */
const calmMs = 10_000
/** An email that has not arrived by then is lost. */
const drainMs = 60_000

export async function run(scope: Scope): Promise<void> {
  const rows: string[][] = []
  const before = subjects.filter(({ checkout }) => checkout.label !== '')
  if (before.length === 0) throw new Error('set POSTERN_BENCH_BEFORE to a checkout of the version before')
  for (const { engine, ...subject } of before) {
    const bed = await makeBed(scope, { engine, ...subject })
    await fillHistory(engine, bed)
    const sink = await startSink(scope)
    const env = { ...bed.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
    const old = { ...bed, env }
    const next = { ...old, checkout: subjectOf(engine).checkout }
    const upgrade = engine === 'PostgreSQL' ? replaceOneByOne : stopAndStart
    rows.push([engine, ...(await measure(old, sink, (fleet, begin) => upgrade({ scope, old, next, fleet, begin })))])
  }
  const title = `An upgrade with ${count(records)} emails in the history and ${perSecond} emails a second`
  const columns = [
    'store',
    'accepted',
    'refused',
    'lost',
    'sent twice',
    'kills before the change',
    'longest pause of accepting, s',
    'of delivering, s',
  ]
  report('upgrade', { [title]: { columns, rows } }, null)
}

/** The processes that take requests. */
type Fleet = BenchedService[]
type Upgrade = {
  readonly scope: Scope
  readonly old: Bed
  readonly next: Bed
  readonly fleet: Fleet
  /** Starts the load, and returns when it has run for a while. */
  readonly begin: () => Promise<void>
}

/** Returns how many migrations were killed before one had changed the schema. */
async function replaceOneByOne({ scope, old, next, fleet, begin }: Upgrade): Promise<number> {
  for (let n = 0; n < 3; n++) fleet.push(await startPostern(scope, old))
  const processes = [...fleet]
  await begin()
  const killed = await killSome(next, 'migrate', startMs)
  for (const process of processes) {
    fleet.push(await startPostern(scope, next))
    const ended = once(process.child, 'exit')
    process.child.kill('SIGTERM')
    // It takes requests until a balancer has noticed.
    await eventually(async () => (await fetch(`${process.ops}/readyz`).catch(() => null))?.status !== 200)
    fleet.splice(fleet.indexOf(process), 1)
    await ended
  }
  return killed
}

/** The same; the copy of the database that a start makes takes most of the time. */
async function stopAndStart({ scope, old, next, fleet, begin }: Upgrade): Promise<number> {
  const process = await startPostern(scope, old)
  fleet.push(process)
  await begin()
  const ended = once(process.child, 'exit')
  process.child.kill('SIGTERM')
  await ended
  const killed = await killSome(next, 'serve', startMs + timeCopy(pathOf(next.env.POSTERN_DATABASE_URL ?? '')))
  fleet[0] = await startPostern(scope, next)
  return killed
}

async function killSome({ checkout, env }: Bed, command: 'migrate' | 'serve', withinMs: number): Promise<number> {
  const [file, program] = programOf(checkout)
  const schema = await readSchema(env)
  let killed = 0
  for (let n = 0; n < kills; n++) {
    const child = spawn(file, [program, command], { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' })
    const ended = once(child, 'exit')
    await Promise.race([ended, sleep(Math.random() * withinMs)])
    child.kill('SIGKILL')
    await ended
    if ((await readSchema(env)) === schema) killed += 1
  }
  return killed
}

async function readSchema({ POSTERN_DATABASE_URL: url = '' }: Bed['env']): Promise<number> {
  const text = 'select max(version) as version from'
  if (!url.startsWith('sqlite:'))
    return (await runSql<{ version: number }>(url, `${text} postern.migration`))[0]?.version ?? 0
  const database = new DatabaseSync(pathOf(url), { readOnly: true })
  const row = database.prepare(`${text} migration`).get()
  database.close()
  return Number(row?.version)
}

const pathOf = (url: string): string => url.slice('sqlite:'.length)

function timeCopy(file: string): number {
  const begunAtMs = monotonicMs()
  copyFileSync(file, `${file}.trial`)
  rmSync(`${file}.trial`)
  return monotonicMs() - begunAtMs
}

/** The load runs while `upgrade` does; returns the cells of a row. */
async function measure(
  { keys }: Bed,
  sink: Sink,
  upgrade: (fleet: Fleet, begin: () => Promise<void>) => Promise<number>,
): Promise<string[]> {
  const fleet: Fleet = []
  const accepted = new Map<number, number>()
  const state = { on: true, refused: 0 }
  const post = async (n: number) => {
    const url = `https://app.acme.test/auth/magic?token=${n.toString(36).padStart(43, 'x')}`
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const status = await fetch(`${fleet[n % fleet.length]?.api}/v1/email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${keys[n % keys.length]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ to: `person${n}@example.com`, type: 'magic_link', url, expiresAt }),
    })
      .then((response) => response.arrayBuffer().then(() => response.status))
      .catch(() => 0)
    if (status === 202) accepted.set(n, monotonicMs())
    else state.refused += 1
  }
  const load = async () => {
    const begunAtMs = monotonicMs()
    const posts: Promise<void>[] = []
    for (let n = 0; state.on; n++) {
      const waitMs = begunAtMs + (n * 1000) / perSecond - monotonicMs()
      if (waitMs > 0) await sleep(waitMs)
      posts.push(post(n))
    }
    await Promise.all(posts)
  }
  const taken: (readonly [number, number])[] = []
  const offered = Promise.withResolvers<void>()
  const killed = await upgrade(fleet, async () => {
    load().then(offered.resolve, offered.reject)
    await sleep(calmMs)
  })
  await sleep(calmMs)
  state.on = false
  await offered.promise
  const countLost = async () => {
    taken.push(...(await sink.report()).taken)
    const numbers = new Set(taken.map(([n]) => n))
    return [...accepted.keys()].filter((n) => !numbers.has(n)).length
  }
  await eventually(async () => (await countLost()) === 0, drainMs).catch(() => {})
  const lost = await countLost()
  const twice = taken.length - new Set(taken.map(([n]) => n)).size
  const pauses = [[...accepted.values()], taken.map(([, atMs]) => atMs)].map(longestPause)
  return [
    ...[accepted.size, state.refused, lost, twice].map(count),
    `${killed} of ${kills}`,
    ...pauses.map((ms) => (ms / 1000).toFixed(1)),
  ]
}

function longestPause(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted.reduce((longest, at, index) => Math.max(longest, at - (sorted[index - 1] ?? at)), 0)
}
