/**
 * `npm run simulate -- [--seed N] [--days D]`: plays D days (default 30) of several processes with SQLite
 * under faults, in runs of at most 30 days with the seeds N, N + 1, … (default: a random one), one on each
 * core. `--seconds S` plays new runs of five days until S seconds have passed. `--faults F` leaves out the
 * faults of a run after the first F, and `--trace` prints what happens. Exits with 1 if a rule is broken.
 */
import { createHash, randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { counted } from '../src/domain/counts.ts'
import type { EpisodeResult } from './episode.ts'
import { runEpisode } from './run-episode.ts'

const runDays = 30
const shortRunDays = 5

/** Looks for few of the first faults with which a run still fails. */
async function shorten(failed: EpisodeResult): Promise<{ faults: number; violation: string }> {
  const total = Object.values(failed.faults).reduce((sum, count) => sum + count, 0)
  let [low, high, violation] = [0, total, failed.violation ?? '']
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const { seed, days } = failed
    const result = await runEpisode({ seed, days, faultsMax: middle, watches: false })
    if (result.violation === null) low = middle + 1
    else [high, violation] = [middle, result.violation]
  }
  return { faults: high, violation }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      days: { type: 'string' },
      faults: { type: 'string' },
      seconds: { type: 'string' },
      trace: { type: 'boolean', default: false },
    },
  })
  const first = Number(values.seed ?? randomInt(1_000_000_000))
  const seconds = values.seconds === undefined ? null : Number(values.seconds)
  const days = seconds === null ? Number(values.days ?? runDays) : Number.POSITIVE_INFINITY
  const faultsMax = values.faults === undefined ? Number.POSITIVE_INFINITY : Number(values.faults)
  const begunAtMs = performance.now()
  const results: EpisodeResult[] = []
  let [seed, left] = [first, days]
  const isOver = () =>
    left <= 0 ||
    results.some(({ violation }) => violation !== null) ||
    (seconds !== null && performance.now() - begunAtMs > seconds * 1000)
  console.log(`seed ${first}`)
  const playRuns = async () => {
    while (!isOver()) {
      const order = {
        seed: seed++,
        days: Math.min(left, seconds === null ? runDays : shortRunDays),
        faultsMax,
        watches: values.trace,
      }
      left -= order.days
      results.push(await runEpisode(order, (line) => process.stdout.write(line)))
    }
  }
  await Promise.all(Array.from({ length: values.trace ? 1 : availableParallelism() }, playRuns))
  results.sort((a, b) => a.seed - b.seed)
  report(results, (performance.now() - begunAtMs) / 1000)
  const failed = results.find(({ violation }) => violation !== null)
  if (failed === undefined) return
  process.exitCode = 1
  console.log(`\nseed ${failed.seed}: ${failed.violation}`)
  const { faults, violation } = await shorten(failed)
  console.log(`with ${counted(faults, 'fault')}: ${violation}`)
  console.log(`npm run simulate -- --seed ${failed.seed} --days ${failed.days} --faults ${faults} --trace`)
}

function report(results: readonly EpisodeResult[], seconds: number): void {
  const sum = (read: (result: EpisodeResult) => Readonly<Record<string, number>>) => {
    const total = new Map<string, number>()
    for (const result of results)
      for (const [name, count] of Object.entries(read(result))) total.set(name, (total.get(name) ?? 0) + count)
    return [...total].toSorted(([a], [b]) => a.localeCompare(b)).map(([name, count]) => `${name} ${count}`)
  }
  const days = results.reduce((total, result) => total + result.days, 0)
  const steps = results.reduce((total, result) => total + result.steps, 0)
  console.log(`${days} days in ${seconds.toFixed(0)} s, ${steps} steps`)
  console.log(`faults: ${sum(({ faults }) => faults).join(', ')}`)
  console.log(`emails: ${sum(({ counts }) => counts).join(', ')}`)
  const trace = createHash('sha256')
  for (const result of results) trace.update(result.trace)
  console.log(`trace ${results.length === 1 ? results[0]?.trace : trace.digest('hex')}`)
}

await main()
