/** The checks of `postern doctor` on a PostgreSQL server. */
import type { Row } from '../../shared/rows.ts'
import type { DatabaseDescription, Finding } from '../../store.ts'
import type { PostgresContext } from './context.ts'

const deadlineMs = 10_000

/**
 * A transaction that has been open for this long keeps dead rows from being removed, and claims slow down.
 */
const transactionMaxS = 600

export async function examine({ operators }: PostgresContext): Promise<Finding[]> {
  const text = `select current_setting('server_version') as version, current_user as role,
    pg_has_role('pg_read_all_stats', 'usage') as may_read, current_setting('synchronous_standby_names') as standbys,
    (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous,
    (select coalesce(max(extract(epoch from now() - xact_start)), 0)::int from pg_stat_activity
      where backend_xmin is not null and pid <> pg_backend_pid()) as oldest`
  const [row] = await operators.query(text, [], { deadlineMs })
  if (row === undefined) return []
  const version: Finding = { check: 'PostgreSQL', ok: true, detail: `version ${row.version}` }
  return [version, judgeReplication(row), judgeOldestTransaction(row)]
}

export async function describeDatabase({
  operators,
  schema,
}: PostgresContext): Promise<Omit<DatabaseDescription, 'schema'>> {
  const text = `select current_setting('server_version') as version,
    (select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
      where relnamespace = $1::regnamespace and relkind in ('r', 'm')) as bytes`
  const [row] = await operators.query(text, [schema], { deadlineMs })
  return { kind: 'PostgreSQL', version: String(row?.version), bytes: Number(row?.bytes), logBytes: 0, freeBytes: null }
}

export function judgeReplication(row: Row): Finding {
  const check = 'replication'
  if (row.standbys === '') {
    const detail = 'no synchronous standby is configured: a commit is on one disk'
    return { check, ok: true, detail }
  }
  if (!row.may_read) return { check, ok: true, detail: missingRights(row) }
  const connected = Number(row.synchronous)
  return { check, ok: connected > 0, detail: `${connected} synchronous standbys are connected` }
}

const missingRights = (row: Row): string => `this role cannot check: grant pg_read_all_stats to ${row.role}`

export function judgeOldestTransaction(row: Row): Finding {
  const check = 'oldest transaction'
  if (!row.may_read) return { check, ok: true, detail: missingRights(row) }
  const detail = `${row.oldest} s; one older than ${transactionMaxS} s (a backup, a forgotten session) slows claims`
  return { check, ok: Number(row.oldest) < transactionMaxS, detail }
}
