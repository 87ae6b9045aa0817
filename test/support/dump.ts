/** The rows of every table of a database as text, on both engines. */
import { DatabaseSync } from 'node:sqlite'
import type { DatabaseAddress } from '../../src/store/database-address.ts'
import { runSql } from './postgres.ts'

/** @returns the rows of each table, as JSON by its name */
export async function dumpTables(database: DatabaseAddress): Promise<Map<string, string>> {
  const tables = new Map<string, string>()
  if (database.engine === 'sqlite') {
    const file = new DatabaseSync(database.path, { readOnly: true })
    const names = file.prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'").all()
    for (const { name } of names) tables.set(String(name), JSON.stringify(file.prepare(`select * from ${name}`).all()))
    file.close()
    return tables
  }
  const { hosts, schema, user } = database
  const url = `postgres://${user}@${hosts[0]?.host}:${hosts[0]?.port}/${database.database}`
  // A partitioned table has the rows of its partitions.
  const names = await runSql<{ name: string }>(
    url,
    `select relname as name from pg_class where relnamespace = '${schema}'::regnamespace and relkind in ('r', 'p')
      and not relispartition`,
  )
  for (const { name } of names) {
    const rows = await runSql(url, `select to_json(r)::text as row from "${schema}"."${name}" r`)
    tables.set(name, rows.map(({ row }) => String(row)).join('\n'))
  }
  return tables
}
