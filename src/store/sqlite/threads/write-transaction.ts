/**
 * One write transaction of the writer thread, and what it holds back until its end: rate buckets,
 * usage counts and the queue's depth are read once, changed in memory and written once, however
 * many requests of the group touch them.
 */
import type { App } from '../../../domain/app/app.ts'
import type { KeyHash } from '../../../domain/app/delivery-key.ts'
import type { AppId, KeyId } from '../../../domain/id.ts'
import type { KeyedHash, KeyRing } from '../../crypto/key-ring.ts'
import { toApp } from '../../shared/records.ts'
import type { Connection } from '../connection.ts'

export type CachedKey = {
  readonly keyId: KeyId
  readonly appId: AppId
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  lastUsedAt: number
}

/** What outlives a transaction in the writer thread. The caches answer only for one data version. */
export type Writer = {
  readonly database: Connection
  readonly ring: KeyRing
  readonly keyedHash: KeyedHash
  readonly queueMax: number
  readonly nowMs: () => number
  readonly apps: Map<AppId, App | null>
  readonly keys: Map<KeyHash, CachedKey | null>
  /** Where the turns among apps and the slow passes over big tables go on. */
  readonly cursors: {
    app: string
    suspectLast: boolean
    /** Where the pass over a table goes on; null when it has been through. */
    rate: string | null
    idempotency: string | null
    passBegunAt: number
  }
  dataVersion: number
}

/** One app's count of one thing today: what is stored, once it was looked at, and what came on top. */
type Counted = { readonly appId: AppId; readonly what: string; stored: number | null; by: number }

const dayMs = 86_400_000

export class WriteTransaction {
  readonly writer: Writer
  readonly nowMs: number
  readonly #rates = new Map<string, { tatUs: number; changed: boolean }>()
  readonly #usage = new Map<string, Counted>()
  #depth: number | null = null
  #depthBy = 0

  /** Call it inside an open transaction: what another process changed is forgotten here. */
  constructor(writer: Writer) {
    this.writer = writer
    this.nowMs = writer.nowMs()
    const version = Number(this.sql('pragma data_version').get()?.data_version)
    if (version !== writer.dataVersion) {
      this.forget()
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
    return this.writer.database.sql(text)
  }

  /** After a change of apps or keys by this thread. */
  forget(): void {
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

  /** Stored theoretical arrival time of a bucket, 0 where there is none. */
  rate(k: string): number {
    let bucket = this.#rates.get(k)
    if (bucket === undefined) {
      const tat = this.sql('select tat from rate where k = ?').get(k)?.tat
      bucket = { tatUs: Number(tat ?? 0), changed: false }
      this.#rates.set(k, bucket)
    }
    return bucket.tatUs
  }

  setRate(k: string, tatUs: number): void {
    this.#rates.set(k, { tatUs, changed: true })
  }

  /** Today's count, as it will be at the end of this transaction. */
  usage(appId: AppId, what: string): number {
    const counted = this.#counted(appId, what)
    counted.stored ??= Number(
      this.sql('select n from usage_day where app_id = ? and day = ? and what = ?').get(appId, this.day, what)
        ?.n ?? 0,
    )
    return counted.stored + counted.by
  }

  count(appId: AppId, what: string, by = 1): void {
    this.#counted(appId, what).by += by
  }

  #counted(appId: AppId, what: string): Counted {
    const key = `${appId} ${what}`
    let counted = this.#usage.get(key)
    if (counted === undefined) {
      counted = { appId, what, stored: null, by: 0 }
      this.#usage.set(key, counted)
    }
    return counted
  }

  get depth(): number {
    this.#depth ??= Number(this.sql('select n from queue_depth').get()?.n)
    return this.#depth + this.#depthBy
  }

  changeDepth(by: number): void {
    this.#depthBy += by
  }

  /** Writes what was held back; the last thing before the commit. */
  flush(): void {
    for (const [k, bucket] of this.#rates) {
      if (bucket.changed) this.sql('insert or replace into rate values (?, ?)').run(k, bucket.tatUs)
    }
    for (const { appId, what, by } of this.#usage.values()) {
      if (by === 0) continue
      this.sql(
        'insert into usage_day values (?, ?, ?, ?) on conflict (app_id, day, what) do update set n = n + excluded.n',
      ).run(appId, this.day, what, by)
    }
    if (this.#depthBy !== 0) this.sql('update queue_depth set n = n + ?').run(this.#depthBy)
  }
}
