/** Fills an empty database with what another one held, in one transaction. */
import type { PostgresAddress } from '../../database-address.ts'
import {
  type CopiedCounts,
  type CopiedRows,
  type CopiedTable,
  copiedTables,
  refuseRow,
  requireColumns,
} from '../../shared/table-copy.ts'
import { StoreUnavailable } from '../../store.ts'
import { Connection, type Query } from '../engine/connection.ts'
import { isServerRefusal } from '../engine/errors.ts'
import { makeSchema } from './migrate.ts'

/** The whole copy is one transaction. */
const deadlineMs = 3_600_000

/**
 * Makes the schema and fills it. Throws `StoreUnavailable` if it exists: a process that uses it would keep
 * its hash key. After any failure nothing is there.
 * @returns the rows of each table
 */
export async function importRows(
  address: PostgresAddress,
  steps: Iterable<CopiedRows>,
  onCommitted: () => void = () => {},
): Promise<{ readonly copied: CopiedCounts }> {
  const { schema } = address
  const connection = new Connection({ address })
  try {
    const copied = await connection.transaction(async (query) => {
      if ((await makeSchema(query, { schema, schemaUse: 'migrate' })) > 0) {
        throw new StoreUnavailable(
          `the target already has the schema "${schema}", from an earlier copy or another Postern: name an empty database, or another schema (?schema=)`,
        )
      }
      await query("set local synchronous_commit = 'on'")
      const counts = await insertAll(query, steps)
      await query('insert into app_lock (app_id) select app_id from app')
      await query('update queue_depth set count = (select count(*) from queue) where slot = 0')
      await requireCounts(query, counts)
      return counts
    }, deadlineMs)
    onCommitted()
    return { copied }
  } finally {
    await connection.close()
  }
}

async function insertAll(query: Query, steps: Iterable<CopiedRows>): Promise<CopiedCounts> {
  const counts = Object.fromEntries(copiedTables.map((table) => [table, 0])) as Record<CopiedTable, number>
  for (const step of steps) {
    const { table, rows } = step
    const columns = await listColumns(query, table)
    const names = columns.map(({ name }) => name)
    requireColumns(step, names)
    const values = columns.map(({ name, type }) => (isJson(type) ? `${name}::${type}` : name)).join(', ')
    const parameters = columns.map(({ type }, n) => `$${n + 1}::${isJson(type) ? 'text' : type}[]`)
    const text = `insert into ${table} (${names}) select ${values} from unnest(${parameters}) as copied (${names})`
    try {
      await query(
        text,
        columns.map(({ name }) => rows.map((row) => toValue(row[name]))),
      )
    } catch (error) {
      if (!isServerRefusal(error)) throw error
      throw refuseRow(step, error)
    }
    counts[table] += rows.length
  }
  return counts
}

type Column = { readonly name: string; readonly type: string }

/** The columns of a table of the schema that was made just now, but for those that PostgreSQL computes. */
export const listColumns = (query: Query, table: CopiedTable): Promise<Column[]> =>
  query<Column>(
    `select column_name as name, data_type as type from information_schema.columns
      where table_schema = current_schema() and table_name = $1 and is_generated = 'NEVER'
      order by ordinal_position`,
    [table],
  )

export const isJson = (type: string): boolean => type === 'json' || type === 'jsonb'

const toValue = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value) : value)

async function requireCounts(query: Query, counts: CopiedCounts): Promise<void> {
  for (const [table, count] of Object.entries(counts)) {
    const [row] = await query<{ found: string }>(`select count(*) as found from ${table}`)
    if (Number(row?.found) === count) continue
    throw new StoreUnavailable(`${count} rows of ${table} were copied and ${row?.found} are there; nothing was kept`)
  }
}
