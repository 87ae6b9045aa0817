/**
 * Access that ended since a backup was made must not work again when the backup is restored: keys and tokens
 * that were revoked or shortened, people who were disabled or may do less, passkeys and apps that were
 * removed. It is read from the database that the backup replaces, whose audit has recorded every such change:
 * only what has an entry that the backup does not have is compared, so a newer database loses nothing to an
 * older one. Nothing is given back.
 */
import type { DatabaseSync } from 'node:sqlite'
import { hasEnded } from '../../../domain/bearer.ts'
import { isAtLeast, type Role } from '../../../domain/operator/management-token.ts'
import { type KeyRing, openHashKey } from '../../crypto/key-ring.ts'
import type { AccessNames } from '../../database-facts.ts'

type Row = Readonly<Record<string, string | number | null>>
type Rows = ReadonlyMap<string, Row>

const readRows = (database: DatabaseSync, sql: string): Row[] => database.prepare(sql).all() as Row[]

/** By the id in the first column. */
function byId(database: DatabaseSync, columns: string, table: string): Rows {
  const [id = ''] = columns.split(', ')
  return new Map(readRows(database, `select ${columns} from ${table}`).map((row) => [String(row[id]), row]))
}

const secretColumns = {
  delivery_key: 'key_id, name, revoked_at, expires_at',
  token: 'token_id, name, revoked_at, expires_at',
}
const personColumns = 'person_id, name, role, apps, disabled_at'

/** Access as the replaced database has it, and the entries of its audit that the copy of the backup lacks. */
export type Later = {
  readonly delivery_key: Rows
  readonly token: Rows
  readonly people: Rows
  readonly passkeys: Rows
  readonly apps: Rows
  readonly audit: readonly Row[]
}

/** Null if the old database is another one, or is damaged or so old that it cannot tell. */
export function readLater(old: DatabaseSync, copy: DatabaseSync, ring: KeyRing): Later | null {
  try {
    if (!readHashKey(old, ring).equals(readHashKey(copy, ring))) return null
    return {
      delivery_key: byId(old, secretColumns.delivery_key, 'delivery_key'),
      token: byId(old, secretColumns.token, 'token'),
      people: byId(old, personColumns, 'person'),
      passkeys: byId(old, 'passkey_id, counter', 'passkey'),
      apps: byId(old, 'app_id, status', 'app'),
      audit: newerAudit(old, copy),
    }
  } catch {
    return null
  }
}

/** Databases with the same hash key are states of one database. */
function readHashKey(database: DatabaseSync, ring: KeyRing): Buffer {
  const row = database.prepare("select sealed from secret where name = 'hash-key'").get()
  return openHashKey(ring, row?.sealed as Uint8Array | undefined).hashKey
}

function newerAudit(old: DatabaseSync, copy: DatabaseSync): Row[] {
  const known = copy.prepare('select 1 from audit where audit_id = ?')
  return readRows(old, 'select * from audit').filter(
    ({ audit_id }) => known.get(audit_id ?? '') === undefined,
  )
}

/** Carries over into the copy of a backup, in one transaction. Returns what no longer works in the copy. */
export function carryOver(later: Later, copy: DatabaseSync, nowMs: number): AccessNames {
  copy.exec('begin')
  const changed = new Set(later.audit.flatMap(({ target, app_id }) => [String(target), String(app_id)]))
  const carried: AccessNames = {
    keys: endSecrets(copy, later, { table: 'delivery_key', changed, nowMs }),
    tokens: endSecrets(copy, later, { table: 'token', changed, nowMs }),
    people: reducePeople(copy, later, changed),
    passkeys: removePasskeys(copy, later),
    apps: disableApps(copy, later, changed, nowMs),
  }
  // So that a second restore of the same backup still knows what changed.
  for (const entry of later.audit) insertRow(copy, 'audit', entry)
  copy.exec('commit')
  return carried
}

function insertRow(copy: DatabaseSync, table: string, row: Row): void {
  const names = Object.keys(row)
  copy
    .prepare(`insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`)
    .run(...Object.values(row))
}

type Secrets = {
  readonly table: keyof typeof secretColumns
  /** The ids of everything that changed since the backup. */
  readonly changed: ReadonlySet<string>
  readonly nowMs: number
}

const isLive = ({ revoked_at, expires_at }: Row, nowMs: number): boolean =>
  !hasEnded({ revokedAt: revoked_at ?? null, expiresAt: expires_at ?? null }, nowMs)

function endSecrets(copy: DatabaseSync, old: Later, { table, changed, nowMs }: Secrets): string[] {
  const columns = secretColumns[table]
  const [id = ''] = columns.split(', ')
  const update = copy.prepare(`update ${table} set revoked_at = ?, expires_at = ? where ${id} = ?`)
  return readRows(copy, `select ${columns} from ${table}`).flatMap((row) => {
    if (!changed.has(String(row[id]))) return []
    const later = old[table].get(String(row[id]))
    const revokedAt = row.revoked_at ?? (later === undefined ? nowMs : (later.revoked_at ?? null))
    const expiresAt = earlier(row.expires_at ?? null, later?.expires_at ?? null)
    if (revokedAt === row.revoked_at && expiresAt === row.expires_at) return []
    update.run(revokedAt, expiresAt, row[id] ?? null)
    return isLive(row, nowMs) ? [nameRow(row, id)] : []
  })
}

function earlier(a: Row[string], b: Row[string]): Row[string] {
  if (a === null || b === null) return a ?? b ?? null
  return Math.min(Number(a), Number(b))
}

const nameRow = (row: Row, id: string): string =>
  typeof row.name === 'string' ? `${row.name} (${row[id]})` : String(row[id])

function reducePeople(copy: DatabaseSync, { people }: Later, changed: ReadonlySet<string>): string[] {
  const update = copy.prepare('update person set role = ?, apps = ?, disabled_at = ? where person_id = ?')
  return readRows(copy, `select ${personColumns} from person`).flatMap((row) => {
    const later = people.get(String(row.person_id))
    if (later === undefined || !changed.has(String(row.person_id))) return []
    const next = {
      role: lesserRole(row.role as Role, later.role as Role),
      apps: sharedApps(row.apps ?? null, later.apps ?? null),
      disabled_at: row.disabled_at ?? later.disabled_at ?? null,
    }
    if (next.role === row.role && next.apps === row.apps && next.disabled_at === row.disabled_at) return []
    update.run(next.role ?? null, next.apps ?? null, next.disabled_at, row.person_id ?? null)
    return [nameRow(row, 'person_id')]
  })
}

const lesserRole = (a: Role, b: Role): Role => (isAtLeast(a, b) ? b : a)

/** Null: the whole service. */
function sharedApps(given: Row[string], later: Row[string]): Row[string] {
  if (later === null) return given
  if (given === null) return later
  const own = JSON.parse(String(given)) as string[]
  const still = new Set(JSON.parse(String(later)) as string[])
  return own.every((app) => still.has(app)) ? given : JSON.stringify(own.filter((app) => still.has(app)))
}

function removePasskeys(copy: DatabaseSync, { passkeys, audit }: Later): string[] {
  const removals = audit.filter(({ action }) => action === 'passkey.remove')
  const removed = new Set(
    removals.map(({ target, before }) => `${target} ${JSON.parse(String(before)).name}`),
  )
  const remove = copy.prepare('delete from passkey where passkey_id = ?')
  const count = copy.prepare('update passkey set counter = max(counter, ?) where passkey_id = ?')
  const text = `select passkey_id, person_id || ' ' || passkey.name as removed, passkey.name || ' of ' || person.name as name
    from passkey join person using (person_id)`
  return readRows(copy, text).flatMap((row) => {
    const later = passkeys.get(String(row.passkey_id))
    if (later !== undefined) count.run(later.counter ?? 0, row.passkey_id ?? null)
    if (later !== undefined || !removed.has(String(row.removed))) return []
    remove.run(row.passkey_id ?? null)
    return [String(row.name)]
  })
}

/** An app that was deleted or disabled comes back disabled: its mail is held, and its keys are refused. */
function disableApps(
  copy: DatabaseSync,
  { apps }: Later,
  changed: ReadonlySet<string>,
  nowMs: number,
): string[] {
  const disable = copy.prepare(
    "update app set status = 'disabled', status_at = ?, version = version + 1 where app_id = ?",
  )
  return readRows(copy, "select app_id, slug from app where status = 'active'").flatMap((row) => {
    const later = apps.get(String(row.app_id))
    if (!changed.has(String(row.app_id)) || later?.status === 'active') return []
    disable.run(nowMs, row.app_id ?? null)
    return [String(row.slug)]
  })
}

/** Everything in a backup that gives access: it works again when the backup is in place. */
export function listAccess(copy: DatabaseSync, nowMs: number): AccessNames {
  const live = (table: string, id: string): string[] =>
    readRows(copy, `select ${id}, name, revoked_at, expires_at from ${table} order by ${id}`)
      .filter((row) => isLive(row, nowMs))
      .map((row) => nameRow(row, id))
  const activeApps = "app_id in (select app_id from app where status = 'active')"
  return {
    keys: live(`(select * from delivery_key where ${activeApps})`, 'key_id'),
    tokens: live('token', 'token_id'),
    people: readRows(
      copy,
      'select person_id, name from person where disabled_at is null order by person_id',
    ).map((row) => nameRow(row, 'person_id')),
    passkeys: readRows(
      copy,
      `select passkey.name || ' of ' || person.name as name from passkey join person using (person_id)
        where disabled_at is null order by 1`,
    ).map(({ name }) => String(name)),
    apps: readRows(copy, "select slug from app where status = 'active' order by slug").map(({ slug }) =>
      String(slug),
    ),
  }
}
