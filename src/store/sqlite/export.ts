/** Reads a whole database for a copy on PostgreSQL, with the columns that it has there. */
import { type CopiedRows, type CopiedTable, copiedTables, copyStepMax } from '../shared/table-copy.ts'
import { openExclusive } from './database-file.ts'
import { requireCurrentSchema } from './migrate.ts'

// SQLite's idempotency keys and counts lack columns. Rate-limit buckets do not name their app, so they stay behind.
const selects: Record<CopiedTable, string> = {
  app: 'select * from app',
  delivery_key: 'select * from delivery_key',
  idempotency: `select coalesce(queue.app_id, history.app_id) as app_id, idempotency.*
    from idempotency left join queue using (email_id) left join history using (email_id)
    where coalesce(queue.app_id, history.app_id) is not null`,
  usage_day: 'select *, 0 as slot from usage_day',
  queue: 'select *, 0 as session_id from queue',
  history: 'select * from history',
  secret: 'select * from secret',
}

/**
 * All rows, while no other process has the database open. Throws `BackupRefused` if one has, and `SchemaMismatch` if the
 * schema is not that of this program.
 */
export function* exportRows(path: string): Generator<CopiedRows> {
  const database = openExclusive(path, 'a copy')
  try {
    database.exec('begin')
    requireCurrentSchema(
      Number(database.prepare('select max(version) as version from migration').get()?.version),
    )
    for (const table of copiedTables) {
      let rows: Record<string, unknown>[] = []
      for (const row of database.prepare(selects[table]).iterate()) {
        rows.push(row)
        if (rows.length < copyStepMax) continue
        yield { table, rows }
        rows = []
      }
      yield { table, rows }
    }
  } finally {
    database.close()
  }
}
