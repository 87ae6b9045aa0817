/** Start-up: from the start of the process to its first line of help, and to an answer of `/readyz`. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { spawnServe, type Variables } from '../test/support/cli.ts'
import type { Scope } from '../test/support/temporary.ts'
import { type Contender, interleave, report, type Table } from './measure.ts'
import { engines, makeBed, subjectOf } from './processes.ts'

const bin = fileURLToPath(new URL('../bin/postern.js', import.meta.url))
const rounds = 15
const withoutCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

const runMs = (args: readonly string[], env: Variables = {}): Contender['round'] => {
  return async () => {
    const startedMs = performance.now()
    const { status } = spawnSync(process.execPath, args, { env: { ...process.env, ...env } })
    if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`)
    return performance.now() - startedMs
  }
}

const serveMs = (scope: Scope, env: Variables): Contender['round'] => {
  return async () => {
    const startedMs = performance.now()
    const { child, ops } = await spawnServe(scope, env)
    const { status } = await fetch(`${ops}/readyz`)
    const tookMs = performance.now() - startedMs
    if (status !== 200) throw new Error(`/readyz answered ${status}`)
    child.kill('SIGTERM')
    await new Promise((resolve) => child.once('exit', resolve))
    return tookMs
  }
}

export async function run(scope: Scope): Promise<void> {
  const contenders: Contender[] = [
    { name: 'empty Node', round: runMs(['-e', '0']) },
    { name: 'postern --help', round: runMs([bin, '--help']) },
    { name: 'postern --help, nothing cached', round: runMs([bin, '--help'], withoutCache) },
  ]
  for (const engine of engines) {
    const { env } = await makeBed(scope, subjectOf(engine))
    contenders.push({ name: `postern serve, ${engine}`, round: serveMs(scope, env) })
    const uncached = serveMs(scope, { ...env, ...withoutCache })
    contenders.push({ name: `postern serve, ${engine}, nothing cached`, round: uncached })
  }
  await interleave(contenders, 1) // fills the cache
  const standings = await interleave(contenders, rounds)
  const table: Table = {
    columns: ['start', 'median ms', 'least', 'most'],
    rows: standings.map(({ name, median, rounds: times }) => [
      name,
      ...[median, Math.min(...times), Math.max(...times)].map((value) => value.toFixed(0)),
    ]),
  }
  report('startup', { [`Milliseconds from the start of the process, ${rounds} rounds`]: table }, standings)
}
