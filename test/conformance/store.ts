/**
 * Requirements on every store. The same cases run against each engine. They check durability,
 * exactness and privacy, and contain no SQL.
 */
import { test } from 'node:test'
import { activity, nodes, queueMeasures, refusals } from './activity-cases.ts'
import { authHookSecrets } from './auth-hook-secret-cases.ts'
import { groups, idempotency, keysAndApps, limits } from './intake-cases.ts'
import { keyRings } from './key-ring-cases.ts'
import { maintenance } from './maintenance-cases.ts'
import { management } from './management-cases.ts'
import { model } from './model-cases.ts'
import { endedByTheStore, operators } from './operator-cases.ts'
import { people } from './people-cases.ts'
import { fairness, leases, queue } from './queue-cases.ts'
import { reports } from './report-cases.ts'
import { signingKeys } from './signing-key-cases.ts'
import type { Engine, It } from './subject.ts'
import { supersedes } from './supersede-cases.ts'
import { suppressions } from './suppression-cases.ts'
import { testSides } from './test-side-cases.ts'
import { transports } from './transport-cases.ts'
import { webhooks } from './webhook-cases.ts'

/** Registers all cases for one engine. */
export function describeStore(engine: Engine): void {
  const it: It = (name, run, options) =>
    test(`${engine.name}: ${name}`, async (t) => run(t, await engine.open(t, options)))
  keysAndApps(it)
  limits(it)
  groups(it)
  idempotency(it)
  queue(it)
  leases(it)
  fairness(it)
  keyRings(it, engine)
  authHookSecrets(it)
  maintenance(it)
  operators(it)
  endedByTheStore(it)
  management(it)
  activity(it)
  refusals(it)
  nodes(it)
  queueMeasures(it)
  reports(it)
  suppressions(it)
  supersedes(it)
  signingKeys(it)
  transports(it)
  testSides(it)
  webhooks(it)
  people(it)
  model(it)
}
