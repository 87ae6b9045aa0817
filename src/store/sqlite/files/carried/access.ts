/**
 * Keys, tokens, people and passkeys: the copy gives no more access than the database that was there, and no
 * more than the backup. The successor of a key that has been replaced is carried over, since the key itself
 * has ended; and so are the keys of auth servers, because the settings for them are.
 */
import { sharedNetworks } from '../../../../domain/app/key-networks.ts'
import { isAtLeast, type Role } from '../../../../domain/operator/management-token.ts'
import { works } from '../../../scripts/keys.ts'
import { toNetworks } from '../../../shared/rows.ts'
import {
  type Carried,
  change,
  type Databases,
  isOfApp,
  type Kind,
  list,
  listColumns,
  listNames,
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

/** Revokes and shortens in the copy what was revoked or shortened since. */
function endSecrets({ database, nowMs }: Databases, { table, id, made }: Secrets) {
  const now = String(nowMs)
  database.exec(`create temp table ending as
      select c.${id} as id, c.name, c.expires_at as old_expires_at, ${works(now, 'c.')} as worked,
        m.${id} is not null as is_left, m.expires_at as later_expires_at,
        coalesce(c.revoked_at, iif(m.${id} is null, ${now}, m.revoked_at)) as revoked_at,
        coalesce(min(c.expires_at, m.expires_at), c.expires_at, m.expires_at) as expires_at
      from copy.${table} c left join main.${table} m on m.${id} = c.${id}
      where c.${id} in (select target from later_change);
    update copy.${table} as c set revoked_at = e.revoked_at, expires_at = e.expires_at
      from ending e where e.id = c.${id}`)
  const isLive = `(${works(now)})`
  const carried = listNames(
    database,
    `select name, id, iif(${isLive}, 'expires earlier', 'ended') from ending
      where worked and (expires_at is not old_expires_at or not ${isLive}) order by id`,
  )
  const shorter = `select name, id, 'the later expiry' from ending
    where is_left and ${isLive} and expires_at is not later_expires_at order by id`
  const gone = `select name, ${id} from main.${table} where ${id} in (${made}) and ${isLive}
    and ${id} not in (select ${id} from copy.${table}) order by ${id}`
  const lost = [...listNames(database, shorter), ...listNames(database, gone)]
  database.exec('drop table ending')
  return { carried, lost }
}

function carryKeys(databases: Databases): Carried {
  const added = addKeys(databases)
  const { carried, lost } = endSecrets(databases, keySecrets)
  const limited = limitNetworks(databases)
  return { carried: [...carried, ...limited.carried, ...added], lost: [...lost, ...limited.lost] }
}

/** A key works from the networks that both databases allow. An older backup has no column to keep them. */
function limitNetworks({ database, nowMs }: Databases) {
  const hasNetworks = (schema: string) =>
    readRows(database, "select 1 from pragma_table_info('delivery_key', ?) where name = 'networks'", schema).length > 0
  const carried: string[] = []
  const lost: string[] = []
  if (!hasNetworks('main')) return { carried, lost }
  const canKeep = hasNetworks('copy')
  const known = canKeep ? 'c.networks' : 'null'
  const rows = readRows(
    database,
    `select c.key_id, c.name, ${known} as networks, m.networks as later
      from copy.delivery_key c join main.delivery_key m using (key_id)
      where ${known} is not m.networks and ${works(String(nowMs), 'c.')} order by 1`,
  )
  for (const { key_id, later, name, networks } of rows) {
    const next = JSON.stringify(sharedNetworks(toNetworks(networks), toNetworks(later)))
    if (next !== later || !canKeep) lost.push(nameRow(name, key_id, 'the later networks'))
    if (next === networks || !canKeep) continue
    change(database, 'update copy.delivery_key set networks = ? where key_id = ?', next, key_id ?? null)
    carried.push(nameRow(name, key_id, 'fewer networks'))
  }
  return { carried, lost }
}

function addKeys({ database, nowMs }: Databases): string[] {
  const columns = listColumns(database, 'delivery_key').join(', ')
  const text = `with recursive made (id) as (${keySecrets.made}), successor (id) as (
      select key_id from main.delivery_key where replaces in (select key_id from copy.delivery_key)
      union select next.key_id from main.delivery_key next join successor on next.replaces = successor.id)
    insert into copy.delivery_key (${columns})
    select ${columns} from main.delivery_key
      where key_id in (select id from made) and (hook is not null or key_id in (select id from successor))
        and key_id not in (select key_id from copy.delivery_key) and ${isOfApp('app_id')} and ${works(String(nowMs))}
    returning name, key_id, 'made since'`
  return listNames(database, text)
}

const listLive =
  ({ table, id }: Secrets, where: string) =>
  ({ database, nowMs }: Databases) =>
    listNames(
      database,
      `select name, ${id} from copy.${table} where ${where} and ${works(String(nowMs))} order by ${id}`,
    )

function reducePeople({ database }: Databases): Carried {
  const update = database.prepare('update copy.person set role = ?, apps = ?, disabled_at = ? where person_id = ?')
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
  const made = listNames(
    database,
    `select name, person_id from main.person where disabled_at is null
      and person_id in (select target from later_change where action = 'person.create')
      and person_id not in (select person_id from copy.person) order by person_id`,
  )
  return { carried, lost: [...lost, ...made] }
}

const lesserRole = (a: Role, b: Role): Role => (isAtLeast(a, b) ? b : a)

/** The apps of `given` that are in `other` too; null: the whole service. */
function sharedApps(given: Row[string], other: Row[string]): Row[string] {
  if (other === null) return given
  if (given === null) return other
  const own = JSON.parse(String(given)) as string[]
  const others = new Set(JSON.parse(String(other)) as string[])
  return own.every((app) => others.has(app)) ? given : JSON.stringify(own.filter((app) => others.has(app)))
}

const selectPasskeys = (database: 'copy' | 'main'): string =>
  `select k.name || ' of ' || p.name from ${database}.passkey k join ${database}.person p using (person_id)`

function removePasskeys({ database }: Databases): Carried {
  const isRemoved = `passkey_id not in (select passkey_id from main.passkey) and exists (select 1 from later_change l
    where l.target = k.person_id and l.action = 'passkey.remove' and l.detail = k.name)`
  const carried = listNames(database, `${selectPasskeys('copy')} where ${isRemoved} order by 1`)
  database.exec(`delete from copy.passkey as k where ${isRemoved}`)
  // A counter that went back would hide a copied passkey (WebAuthn 6.1.1).
  database.exec(`update copy.passkey as c set counter = m.counter from main.passkey m
    where m.passkey_id = c.passkey_id and m.counter > c.counter`)
  const lost = listNames(
    database,
    `${selectPasskeys('main')} where passkey_id not in (select passkey_id from copy.passkey)
      and person_id in (select target from later_change where action = 'passkey.add') order by 1`,
  )
  return { carried: carried.map((name) => nameRow(name, 'removed')), lost }
}

const ofActiveApp = "app_id in (select app_id from copy.app where status = 'active')"

export const accessKinds: readonly Kind[] = [
  {
    name: 'delivery keys',
    tables: ['delivery_key'],
    carry: carryKeys,
    listWorking: listLive(keySecrets, ofActiveApp),
  },
  {
    name: 'management tokens',
    tables: ['token'],
    carry: (databases) => endSecrets(databases, tokenSecrets),
    listWorking: listLive(tokenSecrets, 'true'),
  },
  {
    name: 'people',
    tables: ['person'],
    carry: reducePeople,
    listWorking: list('select name, person_id from copy.person where disabled_at is null order by person_id'),
  },
  {
    name: 'passkeys',
    tables: ['passkey'],
    carry: removePasskeys,
    listWorking: list(`${selectPasskeys('copy')} where disabled_at is null order by 1`),
  },
]
