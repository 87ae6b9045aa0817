/**
 * Requests on PostgreSQL, from their key to their lane: each lane is a connection on which groups of requests
 * are decided.
 */
import type { App } from '../../../domain/app/app.ts'
import type { KeyHash } from '../../../domain/app/delivery-key.ts'
import { enqueueDeadlineMs } from '../../../domain/bounds.ts'
import type { AppId, KeyId } from '../../../domain/id.ts'
import { LruMap } from '../../../domain/lru-map.ts'
import { GroupedCalls, type OnGroup, type Settled } from '../../shared/grouped-calls.ts'
import { toApp, toNetworks } from '../../shared/rows.ts'
import type { Caller, EnqueueRequest, EnqueueResult } from '../../store.ts'
import type { Lane, PostgresContext } from '../engine/context.ts'
import { type EnqueueCall, enqueueGroup, toResult } from './enqueue.ts'
import { isolateFaults } from './isolate-faults.ts'

const callersKept = 10_000

/** Looks up the caller of a request, and queues the request on the lane of its app. */
export class EnqueueLanes {
  readonly #context: PostgresContext
  readonly #onQueued: () => void
  /** The callers of key hashes, which never change. */
  readonly #callers = new LruMap<KeyHash, Caller>(callersKept)
  readonly #lookUps: GroupedCalls<KeyHash>
  readonly #lanes: readonly GroupedCalls<EnqueueCall>[]

  constructor(
    context: PostgresContext,
    groups: { readonly groupMax: number; readonly onGroup: OnGroup | undefined },
    onQueued: () => void,
  ) {
    this.#context = context
    this.#onQueued = onQueued
    const bounds = { groupMax: groups.groupMax, inFlightMax: 1 }
    this.#lookUps = new GroupedCalls((hashes) => this.#lookUp(hashes), bounds)
    this.#lanes = context.lanes.map(
      (lane) =>
        new GroupedCalls((calls) => isolateFaults(calls, (some) => this.#decide(lane, some)), {
          ...bounds,
          onGroup: groups.onGroup,
        }),
    )
  }

  async enqueue(request: EnqueueRequest): Promise<EnqueueResult> {
    const endMs = performance.now() + enqueueDeadlineMs
    const left = () => Math.max(0, endMs - performance.now())
    const caller =
      'appId' in request ? { appId: request.appId, keyId: null } : await this.#findCaller(request.keyHash, left())
    if (caller === null) return { kind: 'invalid_key' }
    const lane = this.#lanes[chooseLane(caller.appId, this.#lanes.length)]
    return (await lane?.submit({ request, caller }, left())) as EnqueueResult
  }

  async #findCaller(hash: KeyHash, waitMs: number): Promise<Caller | null> {
    const known = this.#callers.get(hash)
    if (known !== undefined) return known
    const caller = (await this.#lookUps.submit(hash, waitMs)) as Caller | null
    if (caller !== null) this.#callers.set(hash, caller)
    return caller
  }

  async #lookUp(hashes: readonly KeyHash[]): Promise<Settled[]> {
    const { lookups, schema } = this.#context
    const text = `select key_hash, key_id, app_id from ${schema}.delivery_key where key_hash = any($1)`
    const rows = await lookups.query<{ key_hash: KeyHash; key_id: KeyId; app_id: AppId }>(text, [hashes], {
      deadlineMs: enqueueDeadlineMs,
    })
    const found = new Map(rows.map((row) => [row.key_hash, { keyId: row.key_id, appId: row.app_id }]))
    return hashes.map((hash) => ({ value: found.get(hash) ?? null }))
  }

  async #decide(lane: Lane, calls: readonly EnqueueCall[]): Promise<Settled[]> {
    const decisions = await enqueueGroup(this.#context, lane, calls, enqueueDeadlineMs)
    if (decisions.some((decision) => decision.kind === 'queued')) this.#onQueued()
    const stale = decisions.flatMap(({ kind }, index) =>
      kind === 'judge_again' ? [calls[index]?.caller as Caller] : [],
    )
    // The decisions are committed, so a failure of this look-up fails only the calls that need it.
    const found = await findSettings(this.#context, stale).catch((error: Error) => error)
    return decisions.map((decision, index) => {
      const caller = calls[index]?.caller as Caller
      if (decision.kind !== 'judge_again') return { value: toResult(decision, caller) }
      if (found instanceof Error) return { error: found }
      const app = found.apps.get(caller.appId)
      if (app === undefined) return { value: { kind: 'invalid_key' } }
      return { value: { kind: 'judge_again', app, networks: found.networks.get(caller.keyId) ?? null } }
    })
  }
}

/** The end of an id is random, so apps spread evenly over the lanes. */
const chooseLane = (appId: AppId, lanes: number): number => Number.parseInt(appId.slice(-6), 36) % lanes

type CurrentSettings = {
  readonly apps: ReadonlyMap<AppId, App>
  /** Keys that any address may use are left out. */
  readonly networks: ReadonlyMap<KeyId | null, readonly string[] | null>
}

/** For requests to be judged again. One statement, so that the networks are as old as the version. */
async function findSettings(
  { lookups, schema }: PostgresContext,
  callers: readonly Caller[],
): Promise<CurrentSettings> {
  if (callers.length === 0) return { apps: new Map(), networks: new Map() }
  const text = `select app.*, key.key_id, key.networks from ${schema}.app
    left join ${schema}.delivery_key key on key.app_id = app.app_id and key.key_id = any($2) and key.networks is not null
    where app.app_id = any($1) and app.status <> 'deleted'`
  const ids = [callers.map(({ appId }) => appId), callers.map(({ keyId }) => keyId)]
  const rows = await lookups.query(text, ids, { deadlineMs: enqueueDeadlineMs })
  return {
    apps: new Map(rows.map(toApp).map((app) => [app.id, app])),
    networks: new Map(rows.map(({ key_id, networks }) => [key_id as KeyId | null, toNetworks(networks)])),
  }
}
