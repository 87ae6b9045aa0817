/**
 * The decisions of operators about apps: status, settings, the secrets of webhooks, the keys that sign mail.
 * The later decision counts, because it says where data goes and which links may be sent, and its parts were
 * checked together. An app that was disabled in the backup stays so: a restore enables nothing.
 */
import {
  type Carried,
  change,
  type Databases,
  isOfApp,
  type Kind,
  listColumns,
  nameRow,
  readRows,
} from './kind.ts'

const isChangedBy = (action: string, app: string): string =>
  `exists (select 1 from later_change l where l.app_id = ${app} and l.action = '${action}')`

function carryApps(databases: Databases): Carried {
  const { database } = databases
  const deleted = deleteApps(databases)
  const changed = readRows(
    database,
    `select c.app_id, c.slug, c.status, m.status as later from copy.app c join main.app m on m.app_id = c.app_id
      where c.status <> m.status and ${isOfApp('c.app_id')} and ${isChangedBy('app.update', 'c.app_id')} order by c.slug`,
  )
  const carried = changed.filter(({ status, later }) => status === 'active' || later !== 'active')
  for (const { app_id = null, later = null } of carried) setStatus(databases, app_id, later)
  const enabled = changed.filter((row) => !carried.includes(row))
  const made = readRows(
    database,
    `select slug from main.app m where status <> 'deleted' and ${isChangedBy('app.create', 'm.app_id')}
      and app_id not in (select app_id from copy.app) order by slug`,
  )
  return {
    carried: [
      ...deleted.map((slug) => nameRow(slug, 'deleted')),
      ...carried.map(({ slug, later }) => nameRow(slug, later)),
    ],
    lost: [
      ...made.map(({ slug }) => nameRow(slug)),
      ...enabled.map(({ slug, status }) => nameRow(slug, `stays ${status}`)),
    ],
  }
}

/** Held mail is cancelled after days of being disabled: they begin with the restore. */
function setStatus({ database, nowMs }: Databases, app: string | number | null, status: unknown): void {
  const text = `update copy.app as c set status = ?, status_at = ?, version = max(c.version + 1, coalesce(
      (select version from main.app m where m.app_id = c.app_id), 0)) where app_id = ?`
  change(database, text, String(status), nowMs, app)
}

/** As an operator deletes an app; maintenance then cancels its mail. */
function deleteApps(databases: Databases): string[] {
  const { database } = databases
  const deleted = readRows(
    database,
    `select c.app_id, c.slug from copy.app c left join main.app m on m.app_id = c.app_id
      where ${isOfApp('c.app_id')} and coalesce(m.status, 'deleted') = 'deleted'
        and ${isChangedBy('app.delete', 'c.app_id')} order by c.slug`,
  )
  for (const { app_id = null } of deleted) {
    for (const table of ['delivery_key', 'suppression', 'webhook_message', 'webhook_receiver'])
      change(database, `delete from copy.${table} where app_id = ?`, app_id)
    setStatus(databases, app_id, 'deleted')
    change(database, 'update copy.app set slug = app_id where app_id = ?', app_id)
  }
  return deleted.map(({ slug }) => String(slug))
}

const listActiveApps = ({ database }: Databases): string[] =>
  readRows(database, "select slug from copy.app where status = 'active' order by slug").map(({ slug }) =>
    String(slug),
  )

function carrySettings({ database }: Databases): Carried {
  const changed = readRows(
    database,
    `select c.app_id, c.slug, c.settings, m.settings as later
      from copy.app c join main.app m on m.app_id = c.app_id
      where c.settings <> m.settings and ${isOfApp('c.app_id')} and m.status <> 'deleted'
        and ${isChangedBy('app.update', 'c.app_id')} order by c.slug`,
  )
  const text = `update copy.app as c set settings = m.settings, updated_at = m.updated_at,
      version = max(c.version + 1, m.version) from main.app m where m.app_id = c.app_id and c.app_id = ?`
  for (const { app_id = null } of changed) change(database, text, app_id)
  const carried = changed.map(({ slug, settings, later }) =>
    nameRow(slug, ...listDifferent(JSON.parse(String(settings)), JSON.parse(String(later)))),
  )
  return { carried, lost: [] }
}

type Settings = Readonly<Record<string, unknown>>

function listDifferent(a: Settings, b: Settings): string[] {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].filter((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name])).sort()
}

const listApps = ({ database }: Databases): string[] =>
  readRows(database, "select slug from copy.app where status <> 'deleted' order by slug").map(({ slug }) =>
    String(slug),
  )

function carryReceivers({ database }: Databases): Carried {
  const columns = listColumns(database, 'webhook_receiver').join(', ')
  const changed = readRows(
    database,
    `select m.app_id, a.slug from main.webhook_receiver m join copy.app a on a.app_id = m.app_id
      left join copy.webhook_receiver c on c.app_id = m.app_id
      where ${isOfApp('m.app_id')} and ${isChangedBy('webhook.secret', 'm.app_id')}
        and (c.app_id is null or c.sealed <> m.sealed or c.old <> m.old) order by a.slug`,
  )
  const text = `insert or replace into copy.webhook_receiver (${columns})
    select ${columns} from main.webhook_receiver where app_id = ?`
  for (const { app_id = null } of changed) change(database, text, app_id)
  return { carried: changed.map(({ slug }) => nameRow(slug)), lost: [] }
}

const listReceivers = ({ database }: Databases): string[] =>
  readRows(database, 'select slug from copy.webhook_receiver join copy.app using (app_id) order by slug').map(
    ({ slug }) => String(slug),
  )

/** A key that is activated retires another one of its domain, so all keys of the domain are carried. */
const changedDomains = `select substr(target, instr(target, '._domainkey.') + 12) from later_change
  where action in ('domain.add_key', 'domain.activate_key', 'domain.remove_key')`

function carrySigningKeys({ database }: Databases): Carried {
  const columns = listColumns(database, 'signing_key').join(', ')
  const rows = (
    of: string,
    other: string,
    state: string,
  ) => `select f.selector || '._domainkey.' || f.domain as name,
      ${state} as state from ${of}.signing_key f
    left join ${other}.signing_key o on o.domain = f.domain and o.selector = f.selector
    where f.domain in (${changedDomains}) and`
  const carried = readRows(
    database,
    `${rows('main', 'copy', 'f.state')} f.state is not o.state
      union all ${rows('copy', 'main', "'removed'")} o.selector is null order by 1`,
  )
  database.exec(`delete from copy.signing_key where domain in (${changedDomains});
    insert into copy.signing_key (${columns})
      select ${columns} from main.signing_key where domain in (${changedDomains})`)
  return { carried: carried.map(({ name, state }) => nameRow(name, state)), lost: [] }
}

const listSigningKeys = ({ database }: Databases): string[] =>
  readRows(
    database,
    "select selector || '._domainkey.' || domain as name from copy.signing_key where state = 'active' order by 1",
  ).map(({ name }) => String(name))

export const appKinds: readonly Kind[] = [
  { name: 'apps', tables: ['app'], carry: carryApps, listWorking: listActiveApps },
  { name: 'settings of apps', tables: ['app'], carry: carrySettings, listWorking: listApps },
  {
    name: 'webhook secrets',
    tables: ['webhook_receiver'],
    carry: carryReceivers,
    listWorking: listReceivers,
  },
  { name: 'signing keys', tables: ['signing_key'], carry: carrySigningKeys, listWorking: listSigningKeys },
]
