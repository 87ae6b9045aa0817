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

/** Everything that gives access to Postern, by names for people. */
export type AccessNames = {
  readonly keys: readonly string[]
  readonly tokens: readonly string[]
  readonly people: readonly string[]
  readonly passkeys: readonly string[]
  readonly apps: readonly string[]
}

export type Restored = DatabaseFacts & {
  /**
   * Access that had ended in the database that was there, and does not work in the restored one either; null
   * if that database could not be asked: it was not there, was damaged or older, or was another one.
   */
  readonly ended: AccessNames | null
  /** Access that works in the restored database. */
  readonly works: AccessNames
  /** The new name of the database that was there before; null if there was none. */
  readonly previous: string | null
  /** Ids of keys that the ring lacks and that sealed queued emails. */
  readonly missingKeyIds: readonly string[]
}
