/**
 * CPU profiles of the service while it accepts and while it drains, on each engine, summed by
 * thread and by source file of Postern (time in Node and in libraries counts for the file that called
 * them). The profiles stay in bench/results/.
 */
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../test/support/temporary.ts'
import { count, report, type Table } from './measure.ts'
import { type Bed, engines, fill, makeBed, startLoader, startPostern, startSink, subjectOf } from './processes.ts'

const windowMs = 6000
const backlog = 60_000
const shownUs = 1

type Frame = { readonly functionName: string; readonly url: string }
type Profile = {
  readonly nodes: readonly { id: number; callFrame: Frame; children?: readonly number[] }[]
  readonly endTime: number
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export async function run(scope: Scope): Promise<void> {
  const sink = await startSink(scope)
  const load = startLoader(scope)
  const tables: Record<string, Table> = {}
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    const accepting = { name: `accept-${engine}`, env: { POSTERN_ROLES: 'api' } }
    tables[`Accepting on ${engine}, µs an email`] = await profiled(bed, accepting, async ({ port }) => {
      const order = { ports: [port], keys: bed.keys, clients: 64, rate: null }
      await load({ ...order, ms: 3000, serial: 0 }) // warms up
      const { perSecond } = await load({ ...order, ms: windowMs, serial: 1_500_000 })
      return perSecond
    })
    const drainBed = await makeBed(scope, subjectOf(engine))
    await fill(drainBed, backlog)
    const relay = `smtp://127.0.0.1:${sink.port}?connections=20`
    const draining = { name: `drain-${engine}`, env: { POSTERN_ROLES: 'worker', POSTERN_SMTP_URL: relay } }
    tables[`Draining on ${engine}, µs an email`] = await profiled(drainBed, draining, async () => {
      await sleep(3000) // warms up
      await sink.report()
      await sleep(windowMs)
      const { taken } = await sink.report()
      return (taken.length * 1000) / windowMs
    })
  }
  report('profile', tables, tables)
}

/** Profiles a service during the last `windowMs` of `work`, which returns the emails per second. */
async function profiled(
  bed: Bed,
  { name, env }: { name: string; env: Record<string, string> },
  work: (service: { port: number }) => Promise<number>,
): Promise<Table> {
  const folder = fileURLToPath(new URL(`./results/profile-${name}`, import.meta.url))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const ends: (() => unknown)[] = []
  const service = await startPostern({ after: (end) => void ends.push(end) }, bed, {
    ...env,
    NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}`,
  })
  const perSecond = await work(service)
  const endedAtMs = performance.now()
  service.child.kill('SIGTERM')
  await once(service.child, 'exit')
  const tailMs = performance.now() - endedAtMs
  for (const end of ends) await end()
  const rows = readdirSync(folder).flatMap((file) => {
    const profile: Profile = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8'))
    return threadRows(profile, { tailMs, emails: (perSecond * windowMs) / 1000 })
  })
  return { columns: ['thread', 'file', 'µs'], rows }
}

/** Time by file within the window that ended `tailMs` before the profile did. */
function threadRows(
  { nodes, endTime, startTime, samples, timeDeltas }: Profile,
  { tailMs, emails }: { tailMs: number; emails: number },
): string[][] {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]))
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id])))
  const owner = (id: number): string => {
    const { functionName = '', url = '' } = frames.get(id) ?? {}
    const own = /\/src\/(.+)$/.exec(url)?.[1]
    if (own !== undefined) return own
    const parent = parents.get(id)
    if (parent !== undefined && !/^\((idle|garbage collector)\)$/.test(functionName)) {
      const above = owner(parent)
      if (above !== 'Node') return above
    }
    return functionName.startsWith('(') && functionName !== '(root)' ? functionName : 'Node'
  }
  const toUs = endTime - tailMs * 1000
  const spent = new Map<string, number>()
  let atUs = startTime
  for (const [index, id] of samples.entries()) {
    const deltaUs = timeDeltas[index] ?? 0
    atUs += deltaUs
    if (atUs < toUs - windowMs * 1000 || atUs > toUs) continue
    const name = owner(id)
    spent.set(name, (spent.get(name) ?? 0) + deltaUs / emails)
  }
  const thread = [...frames.values()].some(({ url }) => url.endsWith('/sqlite/threads/checkpointer.ts'))
    ? 'checkpointer'
    : [...frames.values()].some(({ url }) => url.endsWith('/sqlite/queue/write-transaction.ts'))
      ? 'writer'
      : 'main'
  return [...spent]
    .filter(([, us]) => us >= shownUs)
    .sort(([, a], [, b]) => b - a)
    .map(([name, us]) => [thread, name, count(us)])
}
