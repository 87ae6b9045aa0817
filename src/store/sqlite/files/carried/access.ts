/**
 * Keys, tokens, people and passkeys: the copy gives no more access than the database that was there, and no
 * more than the backup. The successor of a key that has been replaced is carried over, since the key itself
 * has ended; and so are the keys of auth servers, because the settings for them are.
 */
import { hasEnded } from '../../../../domain/bearer.ts'
import { isAtLeast, type Role } from '../../../../domain/operator/management-token.ts'
import {
  type Carried,
  type Databases,
  isOfApp,
  type Kind,
  listColumns,
  nameRow,
  type Row,
  readRows,
} from './kind.ts'

type Secrets = {
  readonly table: string
  readonly id: string
  /** The ids of those that were made since the backup. */
  readonly made: string
}

const keySecrets: Secrets = {
  table: 'delivery_key',
  id: 'key_id',
  made: `select target from later_change where action = 'key.create'
    union select detail from later_change where action = 'key.replace'`,
}
const tokenSecrets: Secrets = {
  table: 'token',
  id: 'token_id',
  made: "select target from later_change where action = 'token.create'",
}

const isLive = ({ revoked_at, expires_at }: Row, nowMs: number): boolean =>
  !hasEnded({ revokedAt: revoked_at ?? null, expiresAt: expires_at ?? null }, nowMs)

/** Revokes and shortens in the copy what was revoked or shortened since. */
function endSecrets({ database, nowMs }: Databases, { table, id, made }: Secrets): Carried {
  const update = database.prepare(`update copy.${table} set revoked_at = ?, expires_at = ? where ${id} = ?`)
  const changed = readRows(
    database,
    `select c.${id} as id, c.name, c.revoked_at, c.expires_at, m.${id} is null as is_gone,
        m.revoked_at as later_revoked_at, m.expires_at as later_expires_at
      from copy.${table} c left join main.${table} m on m.${id} = c.${id}
      where c.${id} in (select target from later_change) order by 1`,
  )
  const carried: string[] = []
  const lost: string[] = []
  for (const row of changed) {
    const { expires_at = null, id: rowId = null, later_expires_at = null, revoked_at = null } = row
    const next = {
      revoked_at: revoked_at ?? (row.is_gone === 1 ? nowMs : (row.later_revoked_at ?? null)),
      expires_at: earlier(expires_at, later_expires_at),
    }
    const isLonger = row.is_gone === 0 && next.revoked_at === null && next.expires_at !== later_expires_at
    if (isLonger && isLive(next, nowMs)) lost.push(nameRow(row.name, rowId, 'the later expiry'))
    if (next.revoked_at === revoked_at && next.expires_at === expires_at) continue
    update.run(next.revoked_at, next.expires_at, rowId)
    if (isLive(row, nowMs))
      carried.push(nameRow(row.name, rowId, isLive(next, nowMs) ? 'expires earlier' : 'ended'))
  }
  return { carried, lost: [...lost, ...listMade({ database, nowMs }, { table, id, made })] }
}

const listMade = ({ database, nowMs }: Databases, { table, id, made }: Secrets): string[] =>
  readRows(
    database,
    `select ${id} as id, name, revoked_at, expires_at from main.${table} where ${id} in (${made})
      and ${id} not in (select ${id} from copy.${table}) order by 1`,
  )
    .filter((row) => isLive(row, nowMs))
    .map((row) => nameRow(row.name, row.id))

function earlier(a: Row[string], b: Row[string]): Row[string] {
  if (a === null || b === null) return a ?? b
  return Math.min(Number(a), Number(b))
}

function carryKeys(databases: Databases): Carried {
  const added = addKeys(databases)
  const { carried, lost } = endSecrets(databases, keySecrets)
  return { carried: [...(carried as string[]), ...added], lost }
}

function addKeys({ database, nowMs }: Databases): string[] {
  const columns = listColumns(database, 'delivery_key').join(', ')
  const text = `with recursive made (id) as (${keySecrets.made}), successor (id) as (
      select key_id from main.delivery_key where replaces in (select key_id from copy.delivery_key)
      union select next.key_id from main.delivery_key next join successor on next.replaces = successor.id)
    insert into copy.delivery_key (${columns})
    select ${columns} from main.delivery_key
      where key_id in (select id from made) and (hook is not null or key_id in (select id from successor))
        and key_id not in (select key_id from copy.delivery_key) and ${isOfApp('app_id')}
        and revoked_at is null and (expires_at is null or expires_at > ?)
    returning key_id, name`
  return readRows(database, text, nowMs).map((row) => nameRow(row.name, row.key_id, 'made since'))
}

const listLive = (table: string, id: string, where: string) => (databases: Databases) =>
  readRows(
    databases.database,
    `select ${id} as id, name, revoked_at, expires_at from copy.${table} where ${where} order by 1`,
  )
    .filter((row) => isLive(row, databases.nowMs))
    .map((row) => nameRow(row.name, row.id))

function reducePeople({ database }: Databases): Carried {
  const update = database.prepare(
    'update copy.person set role = ?, apps = ?, disabled_at = ? where person_id = ?',
  )
  const changed = readRows(
    database,
    `select c.person_id, c.name, c.role, c.apps, c.disabled_at,
        m.role as later_role, m.apps as later_apps, m.disabled_at as later_disabled_at
      from copy.person c join main.person m on m.person_id = c.person_id
      where c.person_id in (select target from later_change) order by 1`,
  )
  const carried: string[] = []
  const lost: string[] = []
  for (const row of changed) {
    const next = {
      role: lesserRole(row.role as Role, row.later_role as Role),
      apps: sharedApps(row.apps ?? null, row.later_apps ?? null),
      disabled_at: row.disabled_at ?? row.later_disabled_at ?? null,
    }
    const { later_apps = null, later_disabled_at = null, later_role } = row
    const isDisabled = next.disabled_at !== null
    const isLess = next.role !== later_role || sharedApps(later_apps, next.apps) !== later_apps
    if (later_disabled_at === null && (isLess || isDisabled))
      lost.push(nameRow(row.name, row.person_id, 'rights given since'))
    if (next.role === row.role && next.apps === row.apps && next.disabled_at === row.disabled_at) continue
    update.run(next.role, next.apps, next.disabled_at, row.person_id ?? null)
    if (row.disabled_at === null)
      carried.push(nameRow(row.name, row.person_id, isDisabled ? 'disabled' : 'fewer rights'))
  }
  return { carried, lost: [...lost, ...listNewPeople({ database })] }
}

const listNewPeople = ({ database }: Pick<Databases, 'database'>): string[] =>
  readRows(
    database,
    `select person_id, name from main.person where disabled_at is null
      and person_id in (select target from later_change where action = 'person.create')
      and person_id not in (select person_id from copy.person) order by 1`,
  ).map((row) => nameRow(row.name, row.person_id))

const lesserRole = (a: Role, b: Role): Role => (isAtLeast(a, b) ? b : a)

/** The apps of `given` that are in `other` too; null: the whole service. */
function sharedApps(given: Row[string], other: Row[string]): Row[string] {
  if (other === null) return given
  if (given === null) return other
  const own = JSON.parse(String(given)) as string[]
  const others = new Set(JSON.parse(String(other)) as string[])
  return own.every((app) => others.has(app)) ? given : JSON.stringify(own.filter((app) => others.has(app)))
}

function removePasskeys({ database }: Databases): Carried {
  const remove = database.prepare('delete from copy.passkey where passkey_id = ?')
  const removed = readRows(
    database,
    `select k.passkey_id, k.name || ' of ' || p.name as name
      from copy.passkey k join copy.person p on p.person_id = k.person_id
      where k.passkey_id not in (select passkey_id from main.passkey) and exists (select 1 from later_change l
        where l.target = k.person_id and l.action = 'passkey.remove' and l.detail = k.name) order by 1`,
  )
  for (const { passkey_id = null } of removed) remove.run(passkey_id)
  // A counter that went back would hide a copied passkey (WebAuthn 6.1.1).
  database.exec(`update copy.passkey as c set counter = m.counter from main.passkey m
    where m.passkey_id = c.passkey_id and m.counter > c.counter`)
  const made = readRows(
    database,
    `select k.name || ' of ' || p.name as name from main.passkey k join main.person p on p.person_id = k.person_id
      where k.passkey_id not in (select passkey_id from copy.passkey) and exists (select 1 from later_change l
        where l.target = k.person_id and l.action = 'passkey.add') order by 1`,
  )
  return {
    carried: removed.map(({ name }) => nameRow(name, 'removed')),
    lost: made.map(({ name }) => nameRow(name)),
  }
}

const listPeople = ({ database }: Databases): string[] =>
  readRows(
    database,
    'select person_id, name from copy.person where disabled_at is null order by person_id',
  ).map((row) => nameRow(row.name, row.person_id))

const listPasskeys = ({ database }: Databases): string[] =>
  readRows(
    database,
    `select k.name || ' of ' || p.name as name from copy.passkey k join copy.person p on p.person_id = k.person_id
      where p.disabled_at is null order by 1`,
  ).map(({ name }) => nameRow(name))

const ofActiveApp = "app_id in (select app_id from copy.app where status = 'active')"

export const accessKinds: readonly Kind[] = [
  {
    name: 'delivery keys',
    tables: ['delivery_key'],
    carry: carryKeys,
    listWorking: listLive('delivery_key', 'key_id', ofActiveApp),
  },
  {
    name: 'management tokens',
    tables: ['token'],
    carry: (databases) => endSecrets(databases, tokenSecrets),
    listWorking: listLive('token', 'token_id', 'true'),
  },
  { name: 'people', tables: ['person'], carry: reducePeople, listWorking: listPeople },
  { name: 'passkeys', tables: ['passkey'], carry: removePasskeys, listWorking: listPasskeys },
]
