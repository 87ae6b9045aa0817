/**
 * One write transaction of the writer thread. Rate-limit buckets, usage counts and the queue's depth
 * are read once, changed in memory and written once, however many requests of the group use them.
 */
import type { App } from '../../../domain/app/app.ts'
import type { KeyHash } from '../../../domain/app/delivery-key.ts'
import type { EndedCount, EndReason, FinalState } from '../../../domain/delivery/states.ts'
import type { AppId, KeyId } from '../../../domain/id.ts'
import type { KeyedHash, KeyRing } from '../../crypto/key-ring.ts'
import { dayMs } from '../../shared/bounds.ts'
import { toApp } from '../../shared/records.ts'
import type { Connection } from '../connection.ts'
import type { Journaled, RecipientBucket, RecipientBuckets } from '../recipient-buckets.ts'

export type CachedKey = {
  readonly keyId: KeyId
  readonly appId: AppId
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  lastUsedAt: number
}

/** A key's bucket by its name, or a recipient's. */
export type Bucket = string | RecipientBucket

/** The state of the writer thread between transactions. The caches are valid for one data version. */
export type Writer = {
  readonly connection: Connection
  readonly ring: KeyRing
  readonly keyedHash: KeyedHash
  readonly queueMax: number
  readonly nowMs: () => number
  readonly apps: Map<AppId, App | null>
  readonly keys: Map<KeyHash, CachedKey>
  readonly recipients: RecipientBuckets
  readonly cursors: {
    /** The app that was served last. */
    app: AppId | ''
    /** The last claim handed out a suspect. */
    suspectLast: boolean
    /** Where the scan of a table continues; null between scans. */
    rateBucket: string | null
    recipientJournal: number | null
    idempotency: string | null
    scanBegunAt: number
  }
  dataVersion: number
}

/** Today's counter for one app and event: stored value (null until read) and the increment of this transaction. */
type Counter = { readonly appId: AppId; readonly event: string; stored: number | null; by: number }

export class WriteTransaction {
  readonly writer: Writer
  readonly nowMs: number
  readonly #arrivals = new Map<Bucket, { us: number; changed: boolean }>()
  readonly #counters = new Map<string, Counter>()
  #ended: EndedCount[] = []
  #journaled: Journaled | null = null
  #depth: number | null = null
  #depthBy = 0

  /** Create it inside an open transaction: if another process changed the database, the caches are cleared. */
  constructor(writer: Writer) {
    this.writer = writer
    this.nowMs = writer.nowMs()
    const version = Number(this.sql('pragma data_version').get()?.data_version)
    if (version !== writer.dataVersion) {
      this.clearCaches()
      writer.recipients.catchUp(writer.connection, this.nowUs)
      writer.dataVersion = version
    }
  }

  get nowUs(): number {
    return this.nowMs * 1000
  }

  get day(): number {
    return Math.floor(this.nowMs / dayMs)
  }

  sql(text: string) {
    return this.writer.connection.sql(text)
  }

  /** After a change of apps or keys by this thread. */
  clearCaches(): void {
    this.writer.apps.clear()
    this.writer.keys.clear()
  }

  app(appId: AppId): App | null {
    let app = this.writer.apps.get(appId)
    if (app === undefined) {
      const row = this.sql('select * from app where app_id = ?').get(appId)
      app = row === undefined ? null : toApp(row)
      this.writer.apps.set(appId, app)
    }
    return app
  }

  /** The stored theoretical arrival time of a bucket, 0 for a new one. */
  arrivalUs(bucket: Bucket): number {
    let arrival = this.#arrivals.get(bucket)
    if (arrival === undefined) {
      const { recipients, connection } = this.writer
      const us =
        typeof bucket === 'number' ? recipients.arrivalUs(connection, bucket) : this.#keyArrivalUs(bucket)
      arrival = { us, changed: false }
      this.#arrivals.set(bucket, arrival)
    }
    return arrival.us
  }

  #keyArrivalUs(bucket: string): number {
    const row = this.sql('select arrival_us from rate_bucket where bucket = ?').get(bucket)
    return Number(row?.arrival_us ?? 0)
  }

  setArrivalUs(bucket: Bucket, us: number): void {
    this.#arrivals.set(bucket, { us, changed: true })
  }

  /** Today's count, including this transaction. */
  usage(appId: AppId, event: string): number {
    const counter = this.#counter(appId, event)
    counter.stored ??= Number(
      this.sql('select count from usage_day where app_id = ? and day = ? and event = ?').get(
        appId,
        this.day,
        event,
      )?.count ?? 0,
    )
    return counter.stored + counter.by
  }

  count(appId: AppId, event: string): void {
    this.#counter(appId, event).by += 1
  }

  #counter(appId: AppId, event: string): Counter {
    const name = `${appId} ${event}`
    let counter = this.#counters.get(name)
    if (counter === undefined) {
      counter = { appId, event, stored: null, by: 0 }
      this.#counters.set(name, counter)
    }
    return counter
  }

  get depth(): number {
    this.#depth ??= Number(this.sql('select count from queue_depth').get()?.count)
    return this.#depth + this.#depthBy
  }

  changeDepth(by: number): void {
    this.#depthBy += by
  }

  /** The store itself has ended an email. */
  noteEnded(state: FinalState, reason: EndReason | null): void {
    const known = this.#ended.find((ended) => ended.state === state && ended.reason === reason)
    if (known === undefined) this.#ended.push({ state, reason, count: 1 })
    else this.#ended.splice(this.#ended.indexOf(known), 1, { ...known, count: known.count + 1 })
  }

  /** The emails ended since the last call, so that each is reported once. */
  takeEnded(): EndedCount[] {
    const ended = this.#ended
    this.#ended = []
    return ended
  }

  /** Writes what was collected. Call it last, before the commit. */
  flush(): void {
    const recipients: [RecipientBucket, number][] = []
    for (const [bucket, { us, changed }] of this.#arrivals) {
      if (!changed) continue
      if (typeof bucket === 'number') recipients.push([bucket, us])
      else this.sql('insert or replace into rate_bucket (bucket, arrival_us) values (?, ?)').run(bucket, us)
    }
    this.#journaled = this.writer.recipients.write(this.writer.connection, recipients, this.nowUs)
    for (const { appId, event, by } of this.#counters.values()) {
      if (by === 0) continue
      this.sql(
        `insert into usage_day (app_id, day, event, count) values (?, ?, ?, ?)
         on conflict (app_id, day, event) do update set count = count + excluded.count`,
      ).run(appId, this.day, event, by)
    }
    if (this.#depthBy !== 0) this.sql('update queue_depth set count = count + ?').run(this.#depthBy)
  }

  /** Call it after the commit. */
  committed(): void {
    if (this.#journaled !== null) this.writer.recipients.keep(this.#journaled)
  }
}
