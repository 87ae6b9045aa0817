/** Reads everything that an archive holds, as it is at one moment. */
import type { PostgresAddress } from '../../database-address.ts'
import { archivedTables } from '../../shared/archive.ts'
import { type CopiedRows, type CopiedTable, copyStepMax } from '../../shared/table-copy.ts'
import { Connection, type Query } from '../engine/connection.ts'
import { quoteSchema } from '../engine/context.ts'
import { isJson, listColumns } from './import.ts'

const deadlineMs = 3_600_000

/** Counts are spread over rows, which an archive adds up. */
const sources: Partial<Record<CopiedTable, string>> = {
  usage_day: `(select app_id, day, event, sum(count)::bigint as count, 0 as slot from usage_day
    group by app_id, day, event) as usage_day`,
}

export async function exportRows(address: PostgresAddress, onRows: (rows: CopiedRows) => Promise<void>): Promise<void> {
  const connection = new Connection({ address })
  try {
    await connection.transaction(async (query) => {
      await query('set transaction isolation level repeatable read read only')
      await query("set local idle_in_transaction_session_timeout = '5min'") // the file may be on a slow disk
      await query(`set local search_path = ${quoteSchema(address.schema)}, pg_temp`)
      for (const table of archivedTables) await readTable(query, table, onRows)
    }, deadlineMs)
  } finally {
    await connection.close()
  }
}

async function readTable(query: Query, table: CopiedTable, onRows: (rows: CopiedRows) => Promise<void>): Promise<void> {
  const columns = await listColumns(query, table)
  const values = columns.map(({ name, type }) =>
    isJson(type) ? `${name}::text` : type === 'boolean' ? `${name}::int` : name,
  )
  await query(`declare archived no scroll cursor for select ${values.join(', ')} from ${sources[table] ?? table}`)
  for (;;) {
    const rows = await query(`fetch ${copyStepMax} from archived`)
    if (rows.length === 0) break
    await onRows({ table, rows })
  }
  await query('close archived')
}
