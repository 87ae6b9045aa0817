import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeResource } from '../resources.ts'
import { newUnknownOutages } from './outages.ts'

const worker = (...relays: (readonly [name: string, tried: boolean])[]) =>
  ({
    ...{ alive: true, roles: ['worker'], machine: 'm', seenAt: '2026-11-28T09:00:00Z' },
    relays: relays.map(([name, tried]) => ({ name, tried, available: true })),
  }) as NodeResource

test('an outage may go on until a process has tried the relay', () => {
  const isUnknown = (nodes: NodeResource[], kind: string, subject: string | null = null) =>
    newUnknownOutages(nodes)({ kind, subject })
  const [neither, one] = [worker(['a', false], ['b', false]), worker(['a', true], ['b', false])]
  assert.deepEqual(
    [[], [neither], [one], [neither, one]].map((nodes) => isUnknown(nodes, 'no_relay')),
    [true, true, false, false],
  )
  assert.deepEqual(
    [[], [neither], [one]].map((nodes) => ['a', 'b', 'removed'].map((name) => isUnknown(nodes, 'relay_down', name))),
    [
      [true, true, true],
      [true, true, false],
      [false, true, false],
    ],
  )
  assert.equal(isUnknown([], 'daily_limit_near'), false)
})
