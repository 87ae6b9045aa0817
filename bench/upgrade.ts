/**
 * An upgrade from the checkout in `POSTERN_BENCH_BEFORE`, with `POSTERN_BENCH_EMAILS` finished emails in the
 * database and a steady load. On PostgreSQL ten migrations are killed, and then three processes are replaced
 * one by one. On SQLite the process is stopped, and ten starts of the new one are killed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { eventually } from '../test/support/wait.ts'
import { fillHistory, records } from './history.ts'
import { monotonicMs } from './loop.ts'
import type { Choice } from './main.ts'
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
/** Load before and after. */
const calmMs = 10_000
/** An email that has not arrived by then is lost. */
const drainMs = 60_000

export async function run(scope: Scope, { engine: only }: Choice): Promise<void> {
  const olds = subjects.filter(({ checkout }) => checkout.label !== '')
  const before = olds.filter(({ engine }) => only === undefined || engine.toLowerCase() === only)
  if (olds.length === 0) throw new Error('set POSTERN_BENCH_BEFORE to a checkout of the version before')
  const measured: Record<string, Measured> = {}
  for (const subject of before) {
    const bed = await makeBed(scope, subject)
    await fillHistory(subject.engine, bed)
    const sink = await startSink(scope)
    const env = { ...bed.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
    const old = { ...bed, env }
    const next = { ...old, checkout: subjectOf(subject.engine).checkout }
    const migrateMs = await timeMigration(await makeBed(scope, subject), next.checkout)
    const upgrade = subject.engine === 'PostgreSQL' ? replaceOneByOne : stopAndStart
    const { keys } = bed
    measured[subject.engine] = await measure(keys, sink, (fleet, begin) =>
      upgrade({ scope, old, next, migrateMs, fleet, begin }),
    )
  }
  const title = `An upgrade with ${count(records)} emails in the history and ${perSecond} emails a second`
  const columns = [
    'store',
    'accepted',
    'not acknowledged',
    'lost',
    'sent twice',
    'killed before the change',
    'longest pause of accepting, s',
    'of delivering, s',
    'the last start, s',
  ]
  const rows = Object.entries(measured).map(([engine, result]) => [
    engine,
    ...[result.accepted, result.refused, result.lost, result.twice].map(count),
    `${result.killed} of ${kills}`,
    ...[result.acceptPauseMs, result.deliverPauseMs, result.startMs].map((ms) => (ms / 1000).toFixed(1)),
  ])
  report('upgrade', { [title]: { columns, rows } }, measured)
}

type Measured = Upgraded & {
  readonly accepted: number
  readonly refused: number
  readonly lost: number
  readonly twice: number
  readonly acceptPauseMs: number
  readonly deliverPauseMs: number
}

/** The processes that requests are sent to. */
type Fleet = BenchedService[]
type Upgrade = {
  readonly scope: Scope
  readonly old: Bed
  readonly next: Bed
  /** How long the command takes that changes the schema of a small database. */
  readonly migrateMs: number
  readonly fleet: Fleet
  /** Starts the load, and returns when it has run for a while. */
  readonly begin: () => Promise<void>
}

type Upgraded = {
  /** Migrations that were killed before one had changed the schema. */
  readonly killed: number
  /** How long the last process took to start. */
  readonly startMs: number
}

async function replaceOneByOne({ scope, old, next, migrateMs, fleet, begin }: Upgrade): Promise<Upgraded> {
  for (let n = 0; n < 3; n++) fleet.push(await startPostern(scope, old))
  const replaced = [...fleet]
  await begin()
  const killed = await killSome(next, 'migrate', migrateMs)
  let startMs = 0
  for (const service of replaced) {
    const started = await startTimed(scope, next)
    startMs = started.startMs
    fleet.push(started.service)
    const ended = once(service.child, 'exit')
    service.child.kill('SIGTERM')
    // It accepts requests until a balancer has seen that it is not ready.
    await eventually(async () => (await fetch(`${service.ops}/readyz`).catch(() => null))?.status !== 200)
    fleet.splice(fleet.indexOf(service), 1)
    await ended
  }
  return { killed, startMs }
}

/** A start copies the database first, which takes most of its time. */
async function stopAndStart({ scope, old, next, migrateMs, fleet, begin }: Upgrade): Promise<Upgraded> {
  const copyMs = timeCopy(pathOf(old.env.POSTERN_DATABASE_URL ?? ''))
  const service = await startPostern(scope, old)
  fleet.push(service)
  await begin()
  const ended = once(service.child, 'exit')
  service.child.kill('SIGTERM')
  await ended
  const killed = await killSome(next, 'serve', migrateMs + copyMs)
  const started = await startTimed(scope, next)
  fleet[0] = started.service
  return { killed, startMs: started.startMs }
}

async function startTimed(scope: Scope, bed: Bed): Promise<{ service: BenchedService; startMs: number }> {
  const begunAtMs = monotonicMs()
  const service = await startPostern(scope, bed)
  return { service, startMs: monotonicMs() - begunAtMs }
}

async function timeMigration({ env }: Bed, checkout: Bed['checkout']): Promise<number> {
  const begunAtMs = monotonicMs()
  await once(spawnCommand({ checkout, env }, 'migrate'), 'exit')
  return monotonicMs() - begunAtMs
}

function spawnCommand({ checkout, env }: Pick<Bed, 'checkout' | 'env'>, command: 'migrate' | 'serve'): ChildProcess {
  const [file, program] = programOf(checkout)
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  return spawn(file, [program, command], { env: { PATH: process.env.PATH, ...env }, stdio: [...stdio] })
}

/** Kills the command in the second half of that time: the first is its start. */
async function killSome(bed: Bed, command: 'migrate' | 'serve', withinMs: number): Promise<number> {
  const { env } = bed
  const schema = await readSchema(env)
  let killed = 0
  for (let n = 0; n < kills; n++) {
    const child = spawnCommand(bed, command)
    const ended = once(child, 'exit')
    await Promise.race([ended, sleep((0.5 + Math.random() / 2) * withinMs)])
    child.kill('SIGKILL')
    const [, signal] = await ended
    if (signal === 'SIGKILL' && (await readSchema(env)) === schema) killed += 1
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

/** The load runs while `upgrade` does. */
async function measure(
  keys: readonly string[],
  sink: Sink,
  upgrade: (fleet: Fleet, begin: () => Promise<void>) => Promise<Upgraded>,
): Promise<Measured> {
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
  let offered = Promise.resolve()
  const upgraded = await upgrade(fleet, () => {
    offered = load()
    return sleep(calmMs)
  })
  await sleep(calmMs)
  state.on = false
  await offered
  const taken: (readonly [n: number, atMs: number])[] = []
  const countLost = () => {
    const arrived = new Set(taken.map(([n]) => n))
    return [...accepted.keys()].filter((n) => !arrived.has(n)).length
  }
  for (const endMs = monotonicMs() + drainMs; monotonicMs() < endMs; await sleep(500)) {
    taken.push(...(await sink.report()).taken)
    if (countLost() === 0) break
  }
  return {
    ...upgraded,
    ...{ accepted: accepted.size, refused: state.refused, lost: countLost() },
    twice: taken.length - new Set(taken.map(([n]) => n)).size,
    acceptPauseMs: longestPause([...accepted.values()]),
    deliverPauseMs: longestPause(taken.map(([, atMs]) => atMs)),
  }
}

function longestPause(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted.reduce((longest, at, index) => Math.max(longest, at - (sorted[index - 1] ?? at)), 0)
}
