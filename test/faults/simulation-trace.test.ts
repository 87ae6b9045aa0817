/** A run of the simulation depends on its seed alone. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EpisodeOrder } from '../../simulation/episode.ts'
import { runEpisode } from '../../simulation/run-episode.ts'

const order: EpisodeOrder = { seed: 5, days: 1, faultsMax: Number.POSITIVE_INFINITY, watches: false }

test('the same seed gives the same trace, twice in one process and in another one', async () => {
  const [first, second, other] = await Promise.all(
    [order, order, { ...order, seed: 6 }].map((each) => runEpisode(each)),
  )
  assert.equal(first?.violation, null)
  assert.equal(second?.trace, first?.trace)
  assert.notEqual(other?.trace, first?.trace)
  const file = fileURLToPath(new URL('../../simulation/main.ts', import.meta.url))
  const { stdout } = spawnSync(process.execPath, [file, '--seed', '5', '--days', '1'], { encoding: 'utf8' })
  assert.match(stdout, new RegExp(`^trace ${first?.trace}$`, 'm'))
})

test('a run with fewer of its faults begins in the same way', async () => {
  const lines = async (faultsMax: number) => {
    const trace: string[] = []
    await runEpisode({ ...order, faultsMax, watches: true }, (line) => trace.push(line))
    return trace
  }
  const [all, few] = await Promise.all([lines(Number.POSITIVE_INFINITY), lines(1)])
  const same = all.findIndex((line, n) => line !== few[n])
  const faults = all.slice(0, same).filter((line) => line.includes(' fault '))
  assert.equal(faults.length, 1)
})
