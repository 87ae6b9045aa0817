/**
 * Conformance: a long random run checked against a model. Clients, workers and an operator act in any
 * order, clocks jump, workers vanish with their claims, stores are opened again. The model is simple on
 * purpose: it knows the acknowledged emails, the holder and fence of each, and the recorded outcomes.
 * POSTERN_MODEL_STEPS sets the length (400), POSTERN_TEST_SEED the run (each run has its own seed; it
 * is printed).
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { keepDays } from '../../src/domain/bounds.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { EmailState } from '../../src/domain/delivery/states.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { type Claim, leaseMs, type Store } from '../../src/store/store.ts'
import { type Random, randomFrom } from '../support/generator.ts'
import { deleteApp, operator } from '../support/operator.ts'
import { atEnd } from '../support/temporary.ts'
import { day, deferred, delivered, type It, newSender, request, type Sender, type Subject } from './subject.ts'

const steps = Number(process.env.POSTERN_MODEL_STEPS ?? 400)
const daily = 60
/**
 * Rounds of ten minutes until the queue is empty: mail of a disabled app is held for a week, and clocks step
 * back.
 */
const roundsMax = 3000

/** An email that was acknowledged. */
type Known = {
  readonly app: string
  readonly queuedAt: number
  readonly expiresAt: number
  /** The last claim's fence and lease end, and the `era` of the clock that set the end. */
  fence: number
  leaseUntil: number
  era: number
  /** A worker claimed mail after the lease had ended: the email may be back in the queue. */
  lapsed: boolean
  /** Its last claim was made by a store that has been closed: another may take it back before it lapses. */
  orphaned: boolean
  claimedBy: number | null
  ended: EmailState | null
}

type Client = Sender & { status: 'active' | 'disabled' | 'deleted'; keyRevoked: boolean }

type World = {
  readonly random: Random
  readonly subject: Subject
  /** Two workers' stores. A crash reopens the second. */
  readonly stores: Store[]
  readonly held: Claim[][]
  readonly clients: Client[]
  readonly known: Map<EmailId, Known>
  readonly idempotent: Map<string, { id: EmailId; at: number }>
  readonly accepted: Map<string, number>
  /** How often the clock has stepped back, and the latest time it has shown. */
  era: number
  latest: number
  serial: number
}

const pick = <T>({ random }: World, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
const storeOf = (world: World): Store => pick(world, world.stores)

async function enqueue(world: World): Promise<void> {
  const store = storeOf(world)
  const client = pick(world, world.clients)
  const idem = world.random() < 0.3 ? `k${Math.floor(world.random() * 40)}` : undefined
  const lifeMs = pick(world, [1_000, 60_000, 900_000, 2 * day])
  const expiresAt = store.now() + lifeMs
  const result = await store.enqueue(request(store, client, { lifeMs, ...(idem && { idem }) }))
  const closed = client.keyRevoked || client.status !== 'active'
  switch (result.kind) {
    case 'judge_again':
      client.app = result.app
      return
    case 'invalid_key':
      return assert.ok(closed, 'a key that holds was refused')
    case 'replayed':
      return assert.equal(result.emailId, world.idempotent.get(`${client.app.id} ${idem}`)?.id)
    case 'queued': {
      assert.ok(!closed, 'a key that does not hold queued an email')
      const name = `${client.app.id} ${idem}`
      const before = idem === undefined ? undefined : world.idempotent.get(name)
      assert.ok(before === undefined || world.latest - before.at >= day, 'queued twice under one key')
      if (idem !== undefined) world.idempotent.set(name, { id: result.emailId, at: store.now() })
      world.known.set(result.emailId, {
        app: client.app.id,
        queuedAt: store.now(),
        expiresAt,
        fence: 0,
        leaseUntil: 0,
        era: 0,
        lapsed: false,
        orphaned: false,
        claimedBy: null,
        ended: null,
      })
      const today = `${client.app.id} ${Math.floor(store.now() / day)}`
      const count = (world.accepted.get(today) ?? 0) + 1
      world.accepted.set(today, count)
      return assert.ok(count <= daily, 'more than the daily limit')
    }
    default:
      assert.equal(result.kind, 'daily_limit_reached')
  }
}

async function claim(world: World, worker: number): Promise<void> {
  const store = world.stores[worker] as Store
  const now = store.now()
  // Without leases it acts as a worker that was paused, or restarted under the same name.
  const held = world.random() < 0.5 ? [] : (world.held[worker] ?? [])
  const { claims, lost } = await store.claimDue({ max: 5, perApp: 50, leases: held })
  for (const { emailId } of lost) {
    const email = world.known.get(emailId)
    if (email?.orphaned) email.lapsed = true
  }
  for (const { emailId, fence } of held) {
    const email = world.known.get(emailId)
    if (email?.fence !== fence || email.lapsed) continue
    const leaseUntil = Math.min(Math.max(email.leaseUntil, now + leaseMs / 2), now + leaseMs)
    Object.assign(email, { leaseUntil, era: world.era })
  }
  for (const email of world.known.values()) {
    if (email.era !== world.era || store.now() >= email.leaseUntil) email.lapsed = true
  }
  for (const one of claims) {
    const email = world.known.get(one.emailId)
    assert.ok(email, 'claimed, and never acknowledged')
    assert.equal(email.ended, null, 'claimed after its end')
    assert.ok(now < email.expiresAt && one.lifeLeftMs > 0, 'claimed after its link had ended')
    assert.equal(world.clients.find(({ app }) => app.id === email.app)?.status, 'active')
    assert.ok(email.lapsed, 'two workers hold one email')
    assert.ok(one.fence > email.fence, 'a fence that is not new')
    const lease = { fence: one.fence, leaseUntil: now + leaseMs, era: world.era, lapsed: false }
    Object.assign(email, lease, { orphaned: false, claimedBy: worker })
    world.held[worker]?.push(one)
  }
}

const terminal: readonly EmailState[] = ['delivered', 'failed', 'expired', 'cancelled']

async function recordOutcome(world: World, worker: number): Promise<void> {
  const held = world.held[worker] ?? []
  const [one] = held.splice(Math.floor(world.random() * held.length), 1)
  if (one === undefined) return
  const store = world.stores[worker] as Store
  const refused = {
    kind: 'failed',
    reply: parseReply('550 no'),
    relay: 'relay:25',
    reason: 'refused_by_relay',
  } as const
  const outcome = pick(world, [delivered, delivered, deferred(pick(world, [1_000, 120_000])), refused])
  const recorded = await store.recordOutcome(one, outcome)
  const email = world.known.get(one.emailId)
  assert.ok(email)
  if (!recorded) {
    if (email.fence !== one.fence || email.lapsed) return
    // The email has ended meanwhile: cancelled (also with its app), or expired by a claim.
    const state = (await store.findEmail(one.emailId))?.state
    return assert.ok(state === undefined || terminal.includes(state), `the holder’s outcome was refused: ${state}`)
  }
  assert.equal(email.fence, one.fence, 'an outcome counted that was not the holder’s')
  assert.equal(email.ended, null, 'an outcome counted after the end')
  email.lapsed = true // its lease is given back
  if (outcome.kind === 'delivered' || outcome.kind === 'failed') email.ended = outcome.kind
}

async function operate(world: World): Promise<void> {
  const store = storeOf(world)
  const client = pick(world, world.clients)
  const action = world.random()
  if (client.status === 'deleted') return
  if (action < 0.3) {
    await store.revokeKey(client.keyId, operator)
    client.keyRevoked = true
  } else if (action < 0.5) {
    client.status = client.status === 'active' ? 'disabled' : 'active'
    await store.updateApp(client.app.id, { status: client.status }, operator)
  } else if (action < 0.6) {
    await deleteApp(store, client.app.id)
    client.status = 'deleted'
  } else if (world.known.size > 0) {
    const [id, email] = pick(world, [...world.known])
    const change = await store.cancelEmail(id, operator)
    if (change === 'done') {
      assert.equal(email.ended, null)
      email.ended = 'cancelled'
    }
  }
  if (client.status === 'deleted' || client.keyRevoked) await addClient(world)
}

async function addClient(world: World): Promise<void> {
  const sender = await newSender(storeOf(world), `m${world.serial++}`, {
    daily,
    recipientPerHour: 1_000,
    keyPerMinute: 100_000,
  })
  world.clients.push({ ...sender, status: 'active', keyRevoked: false })
}

function jump(world: World): void {
  const kind = world.random()
  const back = kind >= 0.95
  if (back) world.era++
  // Back by less than a limit window or by many: in between, a key is refused for up to a window.
  const ranges = back
    ? [
        [0, 5_000],
        [day / 2, day],
      ]
    : [[0, kind < 0.8 ? 90_000 : day]]
  const [least = 0, most = 0] = pick(world, ranges)
  world.subject.advance(Math.floor(least + world.random() * (most - least)) * (back ? -1 : 1))
}

async function crash(world: World): Promise<void> {
  const worker = world.random() < 0.5 ? 0 : 1
  world.held[worker]?.splice(0)
  if (worker === 0) return // the subject's own store stays open
  await world.stores[1]?.close()
  for (const email of world.known.values()) email.orphaned ||= email.claimedBy === 1
  world.stores[1] = await world.subject.reopen()
  world.stores[1].openWorkerSession(() => {})
}

async function step(world: World): Promise<void> {
  world.latest = Math.max(world.latest, storeOf(world).now())
  const choice = world.random()
  const worker = world.random() < 0.5 ? 0 : 1
  if (choice < 0.45) await enqueue(world)
  else if (choice < 0.62) await claim(world, worker)
  else if (choice < 0.84) await recordOutcome(world, worker)
  else if (choice < 0.88) await operate(world)
  else if (choice < 0.94) jump(world)
  else if (choice < 0.97) await storeOf(world).maintain()
  else await crash(world)
}

/** Advances time until the queue is empty, then checks each email's state and reason against the model. */
async function settle(t: TestContext, world: World): Promise<void> {
  const store = world.stores[0] as Store
  world.held[0]?.splice(0)
  await world.stores[1]?.close()
  for (const email of world.known.values()) email.orphaned ||= email.claimedBy === 1
  for (let i = 0; (await store.readQueueGauge()).depth > 0; i++) {
    assert.ok(i < roundsMax, 'the queue does not come to an end')
    await claim(world, 0)
    while ((world.held[0]?.length ?? 0) > 0) await recordOutcome(world, 0)
    world.subject.advance(600_000)
    world.latest = Math.max(world.latest, store.now())
    while ((await store.maintain()).more);
  }
  const ends: Record<string, number> = {}
  for (const [id, email] of world.known) {
    const record = await store.findEmail(id)
    if (record === null) {
      assert.ok(world.latest - email.queuedAt >= keepDays * day, 'acknowledged, and not on record')
      continue
    }
    if (email.ended !== null) assert.equal(record.state, email.ended)
    assert.ok(
      record.state === 'delivered' || record.reason !== null || record.state === 'expired',
      `${id}: ${record.state}`,
    )
    ends[record.state] = (ends[record.state] ?? 0) + 1
  }
  t.diagnostic(`${world.known.size} emails: ${JSON.stringify(ends)}`)
}

export function model(it: It): void {
  it(`rows 1, 18, 30, 33 and 34: ${steps} random steps keep to the model`, async (t, subject) => {
    const seed = Number(process.env.POSTERN_TEST_SEED ?? Date.now() % 1_000_000)
    t.diagnostic(`POSTERN_TEST_SEED=${seed}`)
    const world: World = {
      random: randomFrom(seed),
      subject,
      stores: [subject.store, await subject.reopen()],
      held: [[], []],
      clients: [],
      known: new Map(),
      idempotent: new Map(),
      accepted: new Map(),
      era: 0,
      latest: 0,
      serial: 0,
    }
    atEnd(t, () => world.stores[1]?.close())
    for (const store of world.stores) store.openWorkerSession(() => {})
    for (let i = 0; i < 3; i++) await addClient(world)
    for (let i = 0; i < steps; i++) await step(world)
    await settle(t, world)
  })
}
