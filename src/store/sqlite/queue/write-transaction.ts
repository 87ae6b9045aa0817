/**
 * One write transaction of the writer. Rate-limit buckets, usage counts and the queue's depth
 * are changed in memory and written once, however many requests of the group use them.
 */

import type { App } from '../../../domain/app/app.ts'
import type { KeyHash } from '../../../domain/app/delivery-key.ts'
import type { SuppressionReason } from '../../../domain/delivery/states.ts'
import { dayMs } from '../../../domain/duration.ts'
import type { AppId, EmailId, KeyId } from '../../../domain/id.ts'
import { type EmailType, emailKinds } from '../../../domain/request/email-kinds.ts'
import { type KeyedHash, type KeyRing, makeKeyedHash } from '../../crypto/key-ring.ts'
import { AppTurns } from '../../shared/app-turns.ts'
import { type ClockOffset, readClock } from '../../shared/clock.ts'
import { RecentEmails } from '../../shared/recent-emails.ts'
import { toApp } from '../../shared/rows.ts'
import { Connection } from '../engine/connection.ts'
import { type Bucket, Buckets, type Journaled } from './buckets.ts'

export type CachedKey = {
  readonly keyId: KeyId
  readonly bucket: Bucket
  readonly appId: AppId
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  lastUsedAt: number
  readonly networks: readonly string[] | null
}

/** The state of the writer between transactions. The caches are valid for one data version. */
export type Writer = {
  readonly connection: Connection
  readonly ring: KeyRing
  /** The ids of its keys, as a JSON array. */
  readonly ringIds: string
  readonly keyedHash: KeyedHash
  readonly queueMax: number
  readonly nowMs: () => number
  readonly apps: Map<AppId, App | null>
  readonly keys: Map<KeyHash, CachedKey>
  readonly buckets: Buckets
  readonly recent: RecentEmails
  /** Emails accepted on a day. */
  readonly accepted: Map<AppId, { readonly day: number; count: number }>
  readonly cursors: {
    readonly apps: AppTurns
    /** The last claim handed out a suspect. */
    suspectLast: boolean
    /** Where the scans of maintenance continue, null for one that has ended; null between scans. */
    scans: (string | number | null)[] | null
    scanBegunAt: number
    /** Where the search for mail of missing keys continues; null once it has ended. */
    missingKeys: EmailId | '' | null
  }
  dataVersion: number
}

export const newWriter = (
  parts: Pick<Writer, 'connection' | 'ring' | 'keyedHash' | 'queueMax' | 'nowMs'> & {
    /** Whether the database was used with keys that the ring lacks. */
    readonly lacksKeys?: boolean
  },
): Writer => ({
  ...parts,
  ringIds: JSON.stringify(parts.ring.map(({ id }) => id)),
  apps: new Map(),
  keys: new Map(),
  buckets: new Buckets(),
  recent: new RecentEmails(),
  accepted: new Map(),
  cursors: {
    apps: new AppTurns(),
    suspectLast: false,
    scans: null,
    scanBegunAt: 0,
    missingKeys: parts.lacksKeys === true ? '' : null,
  },
  dataVersion: -1,
})

export type WriterData = {
  readonly path: string
  readonly ring: KeyRing
  readonly lacksKeys: boolean
  readonly hashKey: Uint8Array
  readonly queueMax: number
  readonly clock: ClockOffset
}

export function openWriter(data: WriterData): Writer {
  return newWriter({
    connection: new Connection(data.path),
    ring: data.ring,
    lacksKeys: data.lacksKeys,
    keyedHash: makeKeyedHash(Buffer.from(data.hashKey)),
    queueMax: data.queueMax,
    nowMs: () => readClock(data.clock),
  })
}

/** An increment of this transaction to a count of today. */
type Counter = { readonly appId: AppId; readonly event: string; by: number }

/** The event of `usage_day` that the daily limit counts. */
const accepted = 'accepted'

export class WriteTransaction {
  readonly writer: Writer
  readonly nowMs: number
  readonly #charged = new Map<Bucket, number>()
  readonly #counters = new Map<string, Counter>()
  #journaled: Journaled | null = null
  /** Whether `rate_bucket` holds any rows; null until it is asked. */
  #hasRows: boolean | null = null
  /** Whether `suppression` holds any rows; null until it is asked. */
  #hasSuppressions: boolean | null = null
  #depth: number | null = null
  #depthBy = 0

  /**
   * Create it inside an open transaction: if another process changed the database, the caches are cleared.
   */
  constructor(writer: Writer) {
    this.writer = writer
    this.nowMs = writer.nowMs()
    const version = Number(this.sql('pragma data_version').get()?.data_version)
    if (version !== writer.dataVersion) {
      this.clearCaches()
      writer.buckets.catchUp(writer.connection, this.nowUs)
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
    this.writer.accepted.clear()
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

  /** The theoretical arrival time of a bucket, 0 for a new one. */
  arrivalUs(bucket: Bucket): number {
    return this.#charged.get(bucket) ?? (this.writer.buckets.arrivalUs(bucket) || this.#rowArrivalUs(bucket))
  }

  #rowArrivalUs(bucket: Bucket): number {
    this.#hasRows ??= this.sql('select 1 from rate_bucket limit 1').get() !== undefined
    if (!this.#hasRows) return 0
    const row = this.sql('select arrival_us from rate_bucket where bucket = ?').get(bucket)
    return Number(row?.arrival_us ?? 0)
  }

  setArrivalUs(bucket: Bucket, us: number): void {
    this.#charged.set(bucket, us)
  }

  /**
   * The reason for which a recipient gets no such email now; null if it does. A suppression for all apps goes
   * first.
   */
  findSuppression(appId: AppId, recipient: string, type: EmailType): SuppressionReason | null {
    this.#hasSuppressions ??= this.sql('select 1 from suppression limit 1').get() !== undefined
    if (!this.#hasSuppressions) return null
    const until = emailKinds[type].isAsked ? 'until' : 'invitations_until'
    const row = this.sql(
      `select reason from suppression where app_id in (?, '') and recipient = ? and ${until} > ?
       order by app_id limit 1`,
    ).get(appId, recipient, this.nowMs)
    return (row?.reason ?? null) as SuppressionReason | null
  }

  /** Including this transaction. */
  acceptedToday(appId: AppId): number {
    let known = this.writer.accepted.get(appId)
    if (known?.day !== this.day) {
      const row = this.sql('select count from usage_day where app_id = ? and day = ? and event = ?')
      known = { day: this.day, count: Number(row.get(appId, this.day, accepted)?.count ?? 0) }
      this.writer.accepted.set(appId, known)
    }
    return known.count + this.#counter(appId, accepted).by
  }

  count(appId: AppId, event: string): void {
    this.#counter(appId, event).by += 1
  }

  #counter(appId: AppId, event: string): Counter {
    const name = `${appId} ${event}`
    let counter = this.#counters.get(name)
    if (counter === undefined) {
      counter = { appId, event, by: 0 }
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

  /** Writes what was collected. Call it last, before the commit. */
  flush(): void {
    this.#journaled = this.writer.buckets.write(this.writer.connection, [...this.#charged], this.nowUs)
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
    if (this.#journaled !== null) this.writer.buckets.keep(this.#journaled)
    for (const { appId, event, by } of this.#counters.values()) {
      const known = this.writer.accepted.get(appId)
      if (event === accepted && known?.day === this.day) known.count += by
    }
  }
}
