/**
 * Suppressions, emails, webhooks, counts and the audit. These tables may be large, so SQLite carries their
 * rows over, and none passes through this process.
 */
import { recipientPrefix } from '../../../../domain/operator/audit.ts'
import {
  type Carried,
  change,
  count,
  type Databases,
  isOfApp,
  type Kind,
  type Merge,
  mergeRows,
  merging,
} from './kind.ts'

/**
 * Whether the audit entries in a table explain why a suppression is missing. An entry about several that were
 * removed names none of them, only its time.
 */
const isRemovedBy = (entries: string, row: string): string => `(
  exists (select 1 from ${entries} e where e.target = ${row}.suppression_id and e.action = 'suppression.remove')
  or exists (select 1 from ${entries} e where e.target = 'suppressions' and e.action = 'suppression.clear'
    and e.app_id in ('', ${row}.app_id) and cast(e.detail as integer) >= ${row}.at))`

/**
 * `main` had the suppression, because it has the report that made it: a later report has ended it, without an
 * audit entry. The record of the email in the copy must still be as in the backup.
 */
const isForgiven = `exists (select 1 from main.history m join copy.history c on c.email_id = m.email_id
  where m.email_id = s.email_id and json_array_length(m.trail) >= json_array_length(c.trail))`

/** The later row of each recipient counts. */
function carrySuppressions(databases: Databases): Carried {
  const removed = change(
    databases.database,
    `delete from copy.suppression as s
      where not exists (select 1 from main.suppression m where m.recipient = s.recipient and m.app_id = s.app_id)
        and (${isRemovedBy('later_change', 's')} or ${isForgiven})`,
  )
  const { added, replaced } = mergeRows(databases, {
    ...{ table: 'suppression', key: 'recipient, app_id', isNewer: 'excluded.at > known.at' },
    where: `(later.app_id = '' or ${isOfApp('later.app_id')}) and not ${isRemovedBy('known_removal', 'later')}`,
  })
  return { carried: { added, renewed: replaced, removed } }
}

const lastTime = (row: string): string => `coalesce(json_extract(${row}.trail, '$[#-1].at'), ${row}.accepted_at)`

/**
 * Emails that have ended since leave the queue, and their records come instead; records are added, and those
 * with a later report replaced. Emails that still wait keep their attempts.
 */
function carryEmails(databases: Databases): Carried {
  const { database } = databases
  const { added, replaced } = mergeRows(databases, {
    ...{ table: 'history', key: 'email_id', where: 'app_id in (select app_id from copy.app)' },
    isNewer: `excluded.trail <> known.trail and ${lastTime('excluded')} > ${lastTime('known')}`,
  })
  const ended = change(database, 'delete from copy.queue where email_id in (select email_id from main.history)')
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
  return { carried: { ended, attempted, reported: replaced, recorded: added - ended }, lost: { queued } }
}

const isForgotten = `'${recipientPrefix}' || recipient in
  (select target from later_change where action = 'recipient.forget')`

/** An address that was forgotten stays so. Mail to it that the backup has in its queue has ended since. */
function carryForgotten({ database }: Databases): Carried {
  const records = change(database, `delete from copy.history where ${isForgotten}`)
  const queued = change(database, `delete from copy.queue where ${isForgotten}`)
  const refusals = change(database, `update copy.refusal set recipient = null where ${isForgotten}`)
  return { carried: { records, queued, refusals } }
}

/** A webhook that has ended since is not sent again. */
const webhooks: Merge = {
  ...{ table: 'webhook_message', key: 'message_id, app_id', where: isOfApp('app_id') },
  isNewer: 'excluded.tries > known.tries or (excluded.due_at is null and known.due_at is not null)',
}
/** Counts only grow: limits continue from what was used. */
const dailyCounts: Merge = {
  ...{ table: 'usage_day', key: 'app_id, day, event', where: isOfApp('app_id') },
  isNewer: 'excluded.count > known.count',
}
const sources: Merge = {
  table: 'report_source',
  key: 'source',
  isNewer: 'excluded.heard_at > known.heard_at',
}
/** So that a second restore of the same backup still knows what changed. */
const audit: Merge = { table: 'audit', key: 'audit_id', isNewer: 'false' }

export const mailKinds: readonly Kind[] = [
  {
    name: 'suppressions',
    tables: ['suppression'],
    carry: carrySuppressions,
    listWorking: ({ database }) => ({ recipients: count(database, 'copy.suppression') }),
  },
  { name: 'forgotten addresses', tables: ['queue', 'history', 'refusal'], carry: carryForgotten },
  { name: 'emails', tables: ['queue', 'history', 'queue_depth'], carry: carryEmails },
  { name: 'webhooks', tables: ['webhook_message'], carry: merging(webhooks, 'tried') },
  { name: 'daily counts', tables: ['usage_day'], carry: merging(dailyCounts, 'raised') },
  { name: 'sources of reports', tables: ['report_source'], carry: merging(sources, 'raised') },
  { name: 'audit', tables: ['audit'], carry: merging(audit) },
]
