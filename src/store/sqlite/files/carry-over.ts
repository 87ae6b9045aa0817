/**
 * Carries over into the copy of a backup what has changed since, from the database that it replaces. A change
 * by an operator has an audit entry, and counts if the backup lacks that entry: so a newer database loses
 * nothing to an older one. All else is compared by its time.
 */
import type { DatabaseSync } from 'node:sqlite'
import { KeyDiffers, KeyMissing, type KeyRing, openSecrets, type StoredSecret } from '../../crypto/key-ring.ts'
import type { Comparison, FoundByKind } from '../../database-facts.ts'
import { isDamaged } from '../engine/connection.ts'
import { type Carried, type Databases, type Kind, readRows } from './carried/kind.ts'
import { kinds } from './carried/kinds.ts'

/** The database that was there cannot be compared. The message completes "because …". */
class NotComparable extends Error {
  override name = 'NotComparable'
}

export const notCompared = (reason: string): Comparison => ({
  carried: null,
  lost: null,
  notCompared: reason,
})

export const damaged = 'the previous database is damaged'

/**
 * @param old the database that was there, in an exclusive transaction: it begins anew, and nothing is written
 * @param part the copy of the backup; if nothing can be compared it stays as it is
 */
export function carryOver(
  old: DatabaseSync,
  part: string,
  { ring, nowMs }: { readonly ring: KeyRing; readonly nowMs: number },
): Comparison {
  attachCopy(old, part)
  try {
    requireComparable(old, ring)
    const comparison = compare({ database: old, nowMs })
    old.exec('commit')
    return comparison
  } catch (error) {
    if (old.isTransaction) old.exec('rollback')
    return notCompared(readReason(error))
  } finally {
    old.exec('detach copy; begin exclusive')
  }
}

/** 64 MiB: rows of suppressions and records lie in no order. */
const cacheKiB = 65_536

export function attachCopy(database: DatabaseSync, part: string): void {
  database.prepare('attach ? as copy').run(part)
  database.exec(`pragma copy.locking_mode = normal; pragma copy.cache_size = -${cacheKiB}`)
}

/** Rethrows what the old database is no cause of: a full disk, or a bug. */
function readReason(error: unknown): string {
  if (error instanceof NotComparable) return error.message
  if (error instanceof KeyMissing || error instanceof KeyDiffers)
    return 'the key ring cannot open the previous database'
  // JSON that cannot be parsed is damage, too.
  if (!isDamaged(error) && !(error instanceof SyntaxError)) throw error
  return damaged
}

function requireComparable(database: DatabaseSync, ring: KeyRing): void {
  const [missing] = readRows(
    database,
    `select made.name || '.' || info.name as name
      from copy.sqlite_schema made join pragma_table_info(made.name, 'copy') info
      where made.type = 'table' and made.name not like 'sqlite_%' and not exists
        (select 1 from pragma_table_info(made.name, 'main') other where other.name = info.name)`,
  )
  if (missing !== undefined)
    throw new NotComparable(`the previous database is older or damaged: it lacks ${missing.name}`)
  if (!readHashKey(database, ring, 'main').equals(readHashKey(database, ring, 'copy')))
    throw new NotComparable('the previous database is another one, from which the backup was not made')
  // Maintenance deletes old entries, and then a change cannot be seen.
  const [range] = readRows(
    database,
    `select (select min(audit_id) from main.audit) as first, (select max(audit_id) from copy.audit) as last`,
  )
  const { first = null, last = null } = range ?? {}
  if (last !== null && (first === null || String(first) > String(last)))
    throw new NotComparable('the audit of the previous database begins after the backup was made')
}

/** Databases with the same hash key are states of one database. */
function readHashKey(database: DatabaseSync, ring: KeyRing, schema: 'main' | 'copy'): Buffer {
  const stored = database.prepare(`select name, sealed from ${schema}.secret`).all() as StoredSecret[]
  if (stored.length === 0) throw new NotComparable('the previous database holds nothing')
  return openSecrets(ring, stored).hashKey
}

function compare(databases: Databases): Comparison {
  readLaterChanges(databases.database)
  const found = ofCopy(databases.database).map(({ name, carry }) => [name, carry(databases)] as const)
  databases.database.exec('drop table temp.later_change; drop table temp.known_removal')
  const pick = (part: keyof Carried): FoundByKind =>
    Object.fromEntries(found.map(([name, carried]) => [name, carried[part] ?? []]))
  return { carried: pick('carried'), lost: pick('lost'), notCompared: null }
}

/** The kinds whose tables the copy has: a backup may be older than the program. */
function ofCopy(database: DatabaseSync): readonly Kind[] {
  const tables = new Set(
    readRows(database, "select name from copy.sqlite_schema where type = 'table'").map(({ name }) => name),
  )
  return kinds.filter((kind) => kind.tables.every((table) => tables.has(table)))
}

/**
 * `detail` is what some actions need: the name of a passkey, the new key, the time of a removal of many
 * suppressions. Equal changes are one row, so that the tables stay small beside the audit.
 */
function readLaterChanges(database: DatabaseSync): void {
  const columns = 'target, action, app_id, detail'
  const values = `target, action, coalesce(app_id, ''), coalesce(case action
      when 'passkey.remove' then json_extract(before, '$.name')
      when 'key.replace' then json_extract(after, '$.replacedBy')
      when 'suppression.clear' then at end, '')`
  for (const table of ['later_change', 'known_removal'])
    database.exec(`create temp table ${table} (target text, action text, app_id text, detail text,
      primary key (target, action, app_id, detail)) without rowid`)
  database.exec(`create index temp.later_change_app on later_change (app_id, action);
    insert or ignore into later_change (${columns}) select ${values} from main.audit
      where audit_id not in (select audit_id from copy.audit);
    insert or ignore into known_removal (${columns}) select ${values} from copy.audit
      where action in ('suppression.remove', 'suppression.clear')`)
}

/** Everything in the copy that gives access, directs data or holds mail back. */
export function listWorking(databases: Databases): FoundByKind {
  const listed = ofCopy(databases.database).flatMap(({ name, listWorking: list }) =>
    list === undefined ? [] : [[name, list(databases)] as const],
  )
  return Object.fromEntries(listed)
}
