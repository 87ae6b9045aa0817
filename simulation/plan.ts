/**
 * The plan of a run, made before it begins: when the apps are busy, and which faults are injected when. So
 * the same run with fewer of its faults is the same up to the first fault that is left out.
 */
import { dayMs, hourMs } from '../src/domain/duration.ts'
import type { DiskFault } from './disk.ts'
import type { Random } from './random.ts'
import { type ReceiverFault, receiverFaults } from './receiver.ts'
import { type RelayFault, relayFaults } from './relay.ts'
import type { World } from './world.ts'

type Kind =
  | { readonly kind: 'kill' | 'kill_at_commit' | 'kill_at_accept' | 'kill_at_answer'; readonly process: number }
  | { readonly kind: 'power' | 'cut' }
  | { readonly kind: 'restart'; readonly process: number; readonly graceMs: number }
  | { readonly kind: 'freeze'; readonly process: number; readonly ms: number }
  | { readonly kind: 'leap' | 'suspend' | 'clock'; readonly ms: number }
  | { readonly kind: 'drift'; readonly by: number }
  | { readonly kind: 'disk'; readonly fault: DiskFault; readonly ms: number }
  | { readonly kind: 'slow_disk'; readonly writeMs: number; readonly ms: number }
  | { readonly kind: 'relay'; readonly relay: number; readonly fault: RelayFault; readonly ms: number }
  | { readonly kind: 'relays'; readonly faults: readonly RelayFault[]; readonly ms: number }
  | { readonly kind: 'receiver'; readonly fault: ReceiverFault; readonly ms: number }
  | { readonly kind: 'operator'; readonly action: OperatorAction }

const operatorActions = ['disable', 'delete', 'revoke', 'rotate', 'cancel', 'retry', 'bounce', 'suppress'] as const
export type OperatorAction = (typeof operatorActions)[number]

export type Fault = Kind & { readonly atMs: number }

/** A time in which the apps are busy, from the start of the run. */
export type Busy = {
  readonly beginsAtMs: number
  readonly lastsMs: number
  /** Emails a second. */
  readonly rate: number
  /** When so many emails are asked for at once. */
  readonly bursts: readonly { readonly afterMs: number; readonly emails: number }[]
  readonly faults: readonly Fault[]
}

/** The limits of the app that reaches them. */
export const limitedApp = { keyPerMinute: 60, recipientPerHour: 3, daily: 150 }

export const processes = 3
export const relays = 2
/** So that the accounts are closed before the next busy time begins. */
const apartMs = 3 * hourMs

const kinds: readonly (readonly [weight: number, make: (random: Random) => Kind])[] = [
  [4, (random) => ({ kind: 'kill', process: random.below(processes) })],
  [3, (random) => ({ kind: 'kill_at_commit', process: random.below(processes) })],
  [3, (random) => ({ kind: 'kill_at_accept', process: random.below(processes) })],
  [3, (random) => ({ kind: 'kill_at_answer', process: random.below(processes) })],
  [1, () => ({ kind: 'power' })],
  [2, () => ({ kind: 'cut' })],
  [3, (random) => ({ kind: 'restart', process: random.below(processes), graceMs: random.skewed(10, 20_000) })],
  [3, (random) => ({ kind: 'freeze', process: random.below(processes), ms: random.skewed(10, 150_000) })],
  [1, (random) => ({ kind: 'leap', ms: random.skewed(100, 120_000) })],
  [1, (random) => ({ kind: 'suspend', ms: random.skewed(1000, 7_200_000) })],
  [1, (random) => ({ kind: 'clock', ms: random.skewed(10, 7_200_000) * (random.chance(0.5) ? 1 : -1) })],
  [1, (random) => ({ kind: 'drift', by: random.between(-0.01, 0.01) })],
  [2, (random) => ({ kind: 'disk', fault: 'busy', ms: random.skewed(100, 60_000) })],
  [3, (random) => ({ kind: 'disk', fault: 'full', ms: random.skewed(100, 60_000) })],
  [2, () => ({ kind: 'disk', fault: 'torn', ms: 20_000 })],
  [2, (random) => ({ kind: 'slow_disk', writeMs: random.skewed(20, 4000), ms: random.skewed(1000, 30_000) })],
  [
    14,
    (random) => ({
      kind: 'relay',
      relay: random.below(relays),
      fault: random.pick(relayFaults),
      ms: random.skewed(500, 120_000),
    }),
  ],
  [
    4,
    (random) => ({
      kind: 'relays',
      faults: Array.from({ length: relays }, () => random.pick(['refused', 'hang', 'closes', 'refuses'] as const)),
      ms: random.between(5000, 900_000),
    }),
  ],
  [2, (random) => ({ kind: 'receiver', fault: random.pick(receiverFaults), ms: random.skewed(1000, 120_000) })],
  [8, (random) => ({ kind: 'operator', action: random.pick(operatorActions) })],
]

const weights = kinds.reduce((sum, [weight]) => sum + weight, 0)

function makeFault(random: Random, atMs: number): Fault {
  let rest = random.between(0, weights)
  for (const [weight, make] of kinds) {
    rest -= weight
    if (rest < 0) return { ...make(random), atMs }
  }
  return { kind: 'power', atMs }
}

/** @param faultsMax leaves out the faults after so many */
export function makePlan(world: World, days: number, faultsMax = Number.POSITIVE_INFINITY): Busy[] {
  const random = world.random('plan')
  const plan: Busy[] = []
  let left = faultsMax
  for (let beginsAtMs = 60_000; beginsAtMs < days * dayMs; ) {
    const lastsMs = random.skewed(20_000, 120_000)
    const count = random.chance(0.15) ? 0 : 1 + random.below(6)
    const times = Array.from({ length: count }, () => random.between(0, lastsMs)).sort((a, b) => a - b)
    const faults = times.map((afterMs) => makeFault(random, beginsAtMs + afterMs))
    const emails = count === 0 ? 600 + random.below(900) : 20 + random.below(150)
    const bursts = count === 0 || random.chance(0.2) ? [{ afterMs: random.between(0, lastsMs), emails }] : []
    plan.push({ beginsAtMs, lastsMs, rate: random.skewed(0.3, 6), bursts, faults: faults.slice(0, left) })
    left = Math.max(0, left - faults.length)
    beginsAtMs += lastsMs + apartMs + random.skewed(1, 24) * hourMs
  }
  return plan
}
