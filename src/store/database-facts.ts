/** Facts about a database as a file, which a backup, a restore and a copy report. */

export type DatabaseFacts = {
  readonly bytes: number
  readonly schema: number
  readonly apps: number
  /** Emails that have not ended. */
  readonly queued: number
  /** The queued emails whose links have expired: they are never sent. */
  readonly expired: number
  /** Ids of the keys of the ring that sealed anything in it, sorted. */
  readonly keyIds: readonly string[]
}

export type Restored = DatabaseFacts & {
  /** The new name of the database that was there before; null if there was none. */
  readonly previous: string | null
  /** Ids of keys that the ring lacks and that sealed queued emails. */
  readonly missingKeyIds: readonly string[]
}
