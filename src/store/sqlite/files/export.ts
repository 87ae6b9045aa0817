/** Reads a whole database for a copy on PostgreSQL, with the columns that it has there. */
import { existsSync, realpathSync, renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { archivedTables } from '../../shared/archive.ts'
import { BackupRefused, syncFolder } from '../../shared/files.ts'
import { type CopiedRows, type CopiedTable, copiedTables, copyStepMax } from '../../shared/table-copy.ts'
import { openExclusive, withWorkerLock } from './database-file.ts'
import { requireCurrentSchema } from './migrate.ts'

// SQLite's idempotency keys and counts lack columns. Rate-limit buckets do not name their app, so they stay
// behind.
const selects: Record<CopiedTable, string> = {
  app: 'select * from app',
  delivery_key: 'select * from delivery_key',
  token: 'select * from token',
  person: 'select * from person',
  passkey: 'select * from passkey',
  audit: 'select * from audit',
  activity: 'select * from activity',
  refusal: 'select * from refusal',
  last_check: 'select * from last_check',
  idempotency: `select coalesce(queue.app_id, history.app_id) as app_id, idempotency.*
    from idempotency left join queue using (email_id) left join history using (email_id)
    where coalesce(queue.app_id, history.app_id) is not null`,
  usage_day: 'select *, 0 as slot from usage_day',
  queue: 'select *, 0 as session_id from queue',
  history: 'select * from history',
  suppression: 'select * from suppression',
  signing_key: 'select * from signing_key',
  transport: 'select * from transport',
  report_source: 'select * from report_source',
  webhook_receiver: 'select * from webhook_receiver',
  webhook_message: 'select * from webhook_message',
  secret: 'select * from secret',
}

/**
 * Hands all rows to `copy` while no other process has the database open. `copy` calls `onCommitted` at once
 * when the rows are safe: the file then gets another name, so that no service sends its mail again. Rejects
 * with `BackupRefused` if a process has it open, and with `SchemaMismatch` if the schema is not that of this
 * program.
 */
export async function exportDatabase<T>(
  path: string,
  nowMs: number,
  copy: (rows: Iterable<CopiedRows>, onCommitted: () => void) => Promise<T>,
): Promise<T & { readonly previous: string }> {
  if (!existsSync(path)) throw new BackupRefused(`there is no database at ${path}`)
  const file = realpathSync(path)
  const previous = `${file}.copied-${new Date(nowMs).toISOString().replace(/[-:]/g, '')}`
  return withWorkerLock(file, doing, async () => {
    const database = openExclusive(file, doing)
    try {
      requireCurrentSchema(Number(database.prepare('select max(version) as version from migration').get()?.version))
      const result = await copy(readRows(database, copiedTables), () => putAside(file, previous))
      return { ...result, previous }
    } finally {
      database.close()
    }
  })
}

const doing = 'a copy'

function putAside(file: string, previous: string): void {
  try {
    renameSync(file, previous)
    syncFolder(file)
  } catch (error) {
    throw new BackupRefused(
      `the copy is complete, but ${file} keeps its name: ${(error as Error).message}. Move it away, and start no service on it: its mail would be sent twice`,
      { cause: error },
    )
  }
}

/** Everything that an archive holds, as it is at one moment. */
export function* readSnapshot(path: string): Generator<CopiedRows> {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    database.exec('begin')
    yield* readRows(database, archivedTables)
  } finally {
    database.close()
  }
}

function* readRows(database: DatabaseSync, tables: readonly CopiedTable[]): Generator<CopiedRows> {
  for (const table of tables) {
    let rows: Record<string, unknown>[] = []
    for (const row of database.prepare(selects[table]).iterate()) {
      rows.push(row)
      if (rows.length < copyStepMax) continue
      yield { table, rows }
      rows = []
    }
    yield { table, rows }
  }
}
