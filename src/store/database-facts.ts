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

/** Names for people, or counts of what has no name. */
export type Found = readonly string[] | Readonly<Record<string, number>>

/** By the names of the kinds: `delivery keys`, `suppressions`. */
export type FoundByKind = Readonly<Record<string, Found>>

/** How the database that was there differed from the backup, for each kind that was compared. */
export type Comparison =
  | {
      /** The restored database has it as the database that was there, and not as the backup. */
      readonly carried: FoundByKind
      /** Made or given since the backup; the restored database lacks it. */
      readonly lost: FoundByKind
      readonly notCompared: null
    }
  /** `notCompared`: why. The restored database is as the backup. */
  | { readonly carried: null; readonly lost: null; readonly notCompared: string }

export type Restored = DatabaseFacts &
  Comparison & {
    /** Everything that gives access, directs data or holds mail back in the restored database. */
    readonly works: FoundByKind
    /** The kinds that are never compared, and are as in the backup. */
    readonly asInBackup: readonly string[]
    /** The queued emails of the backup that have not ended since, as far as was compared. */
    readonly waiting: number
    /** Those of them whose links have not expired. */
    readonly toSend: number
    /** The new name of the database that was there before; null if there was none. */
    readonly previous: string | null
    /** Ids of keys that the ring lacks and that sealed queued emails. */
    readonly missingKeyIds: readonly string[]
  }
