/** Runs that have found a fault find none now, and a fault that is planted is found. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { found } from '../../simulation/found.ts'
import { plants } from '../../simulation/plants.ts'
import { runEpisode } from '../../simulation/run-episode.ts'

const whole = { faultsMax: Number.POSITIVE_INFINITY, watches: false }

for (const [seed, days] of new Map(found.map((each) => [each.seed, each.days])))
  test(`simulation: ${days} days of seed ${seed} hold`, async () => {
    assert.equal((await runEpisode({ ...whole, seed, days })).violation, null)
  })

for (const { days, seed, undo, what } of found)
  test(`simulation: found again if its repair is undone: ${what}`, async () => {
    assert.notEqual((await runEpisode({ ...whole, seed, days, plant: undo })).violation, null)
  })

const runsMax = 5

for (const [name, { seed, days, plant }] of Object.entries(plants))
  test(`simulation: a planted fault is noticed: ${name}`, async () => {
    const found: (string | null)[] = []
    for (let n = 0; n < runsMax && found.at(-1)?.split(':')[0] !== name; n++)
      found.push((await runEpisode({ ...whole, seed: seed + n, days, plant })).violation)
    assert.equal(found.at(-1)?.split(':')[0], name, found.join('\n'))
  })
