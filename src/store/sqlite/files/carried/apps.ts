/**
 * The decisions of operators about apps: status, settings, the secrets of webhooks, the keys that sign mail.
 * The later decision counts, because it says where data goes and which links may be sent, and its parts were
 * checked together. An app that was disabled in the backup stays so: a restore enables nothing.
 */
import type { DatabaseSync } from 'node:sqlite'
import { simulatedTransport } from '../../../../domain/app/test-side.ts'
import { differences } from '../../../../domain/operator/audit.ts'
import { testSlug } from '../../../shared/rows.ts'
import {
  type Carried,
  change,
  type Databases,
  isOfApp,
  type Kind,
  list,
  listNames,
  mergeRows,
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
  const made = listNames(
    database,
    `select slug from main.app m where status <> 'deleted' and ${isChangedBy('app.create', 'm.app_id')}
      and app_id not in (select app_id from copy.app) order by slug`,
  )
  return {
    carried: [...deleted, ...carried.map(({ slug, later }) => nameRow(slug, later))],
    lost: [...made, ...enabled.map(({ slug, status }) => nameRow(slug, `stays ${status}`))],
  }
}

/** Held mail is cancelled after days of being disabled: they begin with the restore. */
function setStatus({ database, nowMs }: Databases, app: string | number | null, status: unknown): void {
  const text = `update copy.app as c set status = ?, status_at = ?, version = max(c.version + 1, coalesce(
      (select version from main.app m where m.app_id = c.app_id), 0)) where app_id = ?`
  change(database, text, String(status), nowMs, app)
}

/** As an operator deletes an app; maintenance then cancels its mail, and deletes its other records. */
function deleteApps(databases: Databases): string[] {
  const { database } = databases
  const deleted = readRows(
    database,
    `select c.app_id, c.slug from copy.app c left join main.app m on m.app_id = c.app_id
      where ${isOfApp('c.app_id')} and coalesce(m.status, 'deleted') = 'deleted'
        and ${isChangedBy('app.delete', 'c.app_id')} order by c.slug`,
  )
  for (const { app_id = null } of deleted) {
    for (const table of ['delivery_key', 'webhook_receiver'])
      change(database, `delete from copy.${table} where app_id = ?`, app_id)
    setStatus(databases, app_id, 'deleted')
    change(database, 'update copy.app set slug = app_id where app_id = ?', app_id)
  }
  return deleted.map(({ slug }) => nameRow(slug, 'deleted'))
}

function carrySettings({ database }: Databases): Carried {
  const changed = readRows(
    database,
    `select c.app_id, c.slug, c.settings, m.settings as later
      from copy.app c join main.app m on m.app_id = c.app_id
      where c.settings <> m.settings and ${isOfApp('c.app_id')} and m.status <> 'deleted'
        and ${isChangedBy('app.update', 'c.app_id')} order by c.slug`,
  )
  const text = `update copy.app as c set settings = m.settings, transport = m.transport, updated_at = m.updated_at,
      version = max(c.version + 1, m.version) from main.app m where m.app_id = c.app_id and c.app_id = ?`
  for (const { app_id = null } of changed) change(database, text, app_id)
  const carried = changed.map(({ slug, settings, later }) => {
    const different = differences(JSON.parse(String(settings)), JSON.parse(String(later)))
    return nameRow(slug, ...Object.keys({ ...different?.before, ...different?.after }).sort())
  })
  alignTestSides(database)
  return { carried }
}

/** The test side of an app has the settings and the status of the app. */
function alignTestSides(database: DatabaseSync): void {
  database.exec(`update copy.app as side
      set settings = json_set(app.settings, '$.transport', '${simulatedTransport}'), status = app.status,
        status_at = app.status_at, slug = iif(app.status = 'deleted', side.app_id, side.slug),
        version = max(side.version, app.version) + 1
      from copy.app app where side.app_id = replace(app.app_id, 'app_', 'test_') and side.app_id <> app.app_id;
    delete from copy.delivery_key where app_id in (select app_id from copy.app where status = 'deleted')`)
}

function carryReceivers(databases: Databases): Carried {
  const where = `${isOfApp('later.app_id')} and ${isChangedBy('webhook.secret', 'later.app_id')}`
  const carried = listNames(
    databases.database,
    `select slug from main.webhook_receiver later join copy.app using (app_id)
      left join copy.webhook_receiver known using (app_id)
      where ${where} and (later.sealed, later.old) is not (known.sealed, known.old) order by slug`,
  )
  mergeRows(databases, { table: 'webhook_receiver', key: 'app_id', where, isNewer: 'true' })
  return { carried }
}

/** A key that is activated retires another one of its domain, so all keys of the domain are carried. */
const ofChangedDomain = `domain in (select substr(target, instr(target, '._domainkey.') + 12) from later_change
  where action in ('domain.add_key', 'domain.activate_key', 'domain.remove_key'))`

function carrySigningKeys(databases: Databases): Carried {
  const { database } = databases
  const carried = listNames(
    database,
    `select selector || '._domainkey.' || domain, coalesce(later.state, 'removed')
      from main.signing_key later full join copy.signing_key known using (domain, selector)
      where ${ofChangedDomain} and later.state is not known.state order by 1`,
  )
  database.exec(`delete from copy.signing_key where ${ofChangedDomain}`)
  const key = 'domain, selector'
  mergeRows(databases, { table: 'signing_key', key, where: ofChangedDomain, isNewer: 'true' })
  return { carried }
}

const listSigningKeys = list(
  "select selector || '._domainkey.' || domain from copy.signing_key where state = 'active' order by 1",
)

const isChangedTransport =
  "name in (select target from later_change where action in ('transport.put', 'transport.delete'))"

function carryTransports(databases: Databases): Carried {
  const { database } = databases
  const carried = listNames(
    database,
    `select name, case when later.name is null then 'deleted' end
      from main.transport later full join copy.transport known using (name)
      where ${isChangedTransport} and later.sealed is not known.sealed order by 1`,
  )
  database.exec(`delete from copy.transport where ${isChangedTransport}`)
  mergeRows(databases, { table: 'transport', key: 'name', where: isChangedTransport, isNewer: 'true' })
  return { carried }
}

const isNoTestSide = `slug not like '${testSlug}%'`

export const appKinds: readonly Kind[] = [
  {
    name: 'apps',
    tables: ['app'],
    carry: carryApps,
    listWorking: list(`select slug from copy.app where status = 'active' and ${isNoTestSide} order by slug`),
  },
  {
    name: 'settings of apps',
    tables: ['app'],
    carry: carrySettings,
    listWorking: list(`select slug from copy.app where status <> 'deleted' and ${isNoTestSide} order by slug`),
  },
  {
    name: 'webhook secrets',
    tables: ['webhook_receiver'],
    carry: carryReceivers,
    listWorking: list('select slug from copy.webhook_receiver join copy.app using (app_id) order by slug'),
  },
  { name: 'signing keys', tables: ['signing_key'], carry: carrySigningKeys, listWorking: listSigningKeys },
  {
    name: 'transports',
    tables: ['transport'],
    carry: carryTransports,
    listWorking: list('select name from copy.transport order by name'),
  },
]
