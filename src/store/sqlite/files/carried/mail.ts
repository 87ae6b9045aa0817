/**
 * Suppressions, emails, webhooks, counts and the audit. These tables may be large, so SQLite carries their
 * rows over, and none passes through this process.
 */
import type { DatabaseSync } from 'node:sqlite'
import { type Carried, change, count, type Databases, isOfApp, type Kind, listColumns } from './kind.ts'

/**
 * Whether the audit entries in a table explain why a suppression `s` is missing. An entry about several that
 * were removed names none of them, only its time.
 */
const isRemovedBy = (entries: string): string => `(
  exists (select 1 from ${entries} e where e.target = s.suppression_id and e.action = 'suppression.remove')
  or exists (select 1 from ${entries} e where e.target = 'suppressions' and e.action = 'suppression.clear'
    and e.app_id in ('', s.app_id) and cast(e.detail as integer) >= s.at))`

/**
 * `main` had the suppression, because it has the report that made it: a later report has ended it, without an
 * audit entry. The record of the email in the copy must still be as in the backup.
 */
const isForgiven = `exists (select 1 from main.history m join copy.history c on c.email_id = m.email_id
  where m.email_id = s.email_id and json_array_length(m.trail) >= json_array_length(c.trail))`

/** The later row of each recipient counts. */
function carrySuppressions({ database }: Databases): Carried {
  const removed = change(
    database,
    `delete from copy.suppression as s
      where not exists (select 1 from main.suppression m where m.recipient = s.recipient and m.app_id = s.app_id)
        and (${isRemovedBy('later_change')} or ${isForgiven})`,
  )
  const before = count(database, 'copy.suppression')
  const columns = listColumns(database, 'suppression')
  const written = change(
    database,
    `insert into copy.suppression as known (${columns.join(', ')})
      select ${columns.join(', ')} from main.suppression s
        where (s.app_id = '' or ${isOfApp('s.app_id')}) and not ${isRemovedBy('known_removal')}
      on conflict (recipient, app_id) do update
        set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')} where excluded.at > known.at`,
  )
  const added = count(database, 'copy.suppression') - before
  return { carried: { added, renewed: written - added, removed }, lost: [] }
}

const lastTime = (row: string): string =>
  `coalesce(json_extract(${row}.trail, '$[#-1].at'), ${row}.accepted_at)`

/**
 * Emails that have ended since leave the queue, and their records come instead; records are added, and those
 * with a later report replaced. Emails that still wait keep their attempts.
 */
function carryEmails({ database }: Databases): Carried {
  const columns = listColumns(database, 'history').join(', ')
  const reported = change(
    database,
    `update copy.history as c set state = m.state, reason = m.reason, trail = m.trail from main.history m
      where m.email_id = c.email_id and m.trail <> c.trail and ${lastTime('m')} > ${lastTime('c')}`,
  )
  const ended = change(
    database,
    'delete from copy.queue where email_id in (select email_id from main.history)',
  )
  const added = change(
    database,
    `insert into copy.history (${columns}) select ${columns} from main.history m
      where app_id in (select app_id from copy.app) and email_id not in (select email_id from copy.history)`,
  )
  const attempted = change(
    database,
    `update copy.queue as c set state = m.state, attempts = m.attempts, lost_leases = m.lost_leases, fence = m.fence,
        due_at = m.due_at, wanted_at = m.wanted_at, lease_until = m.lease_until, trail = m.trail
      from main.queue m where m.email_id = c.email_id and m.fence > c.fence`,
  )
  database.exec('update copy.queue_depth set count = (select count(*) from copy.queue)')
  const queued = count(
    database,
    `main.queue m where not exists (select 1 from copy.queue c where c.email_id = m.email_id)
      and not exists (select 1 from copy.history c where c.email_id = m.email_id)`,
  )
  const carried = { ended, attempted, reported, recorded: added - ended }
  return { carried, lost: { queued } }
}

/** A webhook that has ended since is not sent again. */
function carryWebhooks({ database }: Databases): Carried {
  const columns = listColumns(database, 'webhook_message')
  const before = count(database, 'copy.webhook_message')
  const written = change(
    database,
    `insert into copy.webhook_message as known (${columns.join(', ')})
      select ${columns.join(', ')} from main.webhook_message where ${isOfApp('app_id')}
      on conflict (message_id) do update
        set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}
        where excluded.tries > known.tries or (excluded.due_at is null and known.due_at is not null)`,
  )
  const added = count(database, 'copy.webhook_message') - before
  return { carried: { added, tried: written - added }, lost: [] }
}

/** Keeps the higher count of both, for counts that only grow: limits go on from what was used. */
const keepHigher = (table: string, value: string, where = 'true') =>
  function carryCounts({ database }: Databases): Carried {
    const columns = listColumns(database, table)
    const keys = columns.filter((column) => column !== value)
    const raised = change(
      database,
      `insert into copy.${table} as known (${columns.join(', ')})
        select ${columns.join(', ')} from main.${table} where ${where}
        on conflict (${keys.join(', ')}) do update set ${value} = excluded.${value}
          where excluded.${value} > known.${value}`,
    )
    return { carried: { raised }, lost: [] }
  }

/** So that a second restore of the same backup still knows what changed. */
function carryAudit({ database }: Databases): Carried {
  const columns = listColumns(database, 'audit').join(', ')
  const added = change(
    database,
    `insert into copy.audit (${columns}) select ${columns} from main.audit
      where audit_id not in (select audit_id from copy.audit)`,
  )
  return { carried: { added }, lost: [] }
}

const countSuppressions = (database: DatabaseSync) => ({ recipients: count(database, 'copy.suppression') })

export const mailKinds: readonly Kind[] = [
  {
    name: 'suppressions',
    tables: ['suppression'],
    carry: carrySuppressions,
    listWorking: ({ database }) => countSuppressions(database),
  },
  { name: 'emails', tables: ['queue', 'history', 'queue_depth'], carry: carryEmails },
  { name: 'webhooks', tables: ['webhook_message'], carry: carryWebhooks },
  {
    name: 'daily counts',
    tables: ['usage_day'],
    carry: keepHigher('usage_day', 'count', isOfApp('app_id')),
  },
  {
    name: 'sources of reports',
    tables: ['feedback_source'],
    carry: keepHigher('feedback_source', 'heard_at'),
  },
  { name: 'audit', tables: ['audit'], carry: carryAudit },
]
