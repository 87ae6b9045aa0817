/**
 * Databases that are copied and stuffed while no service has them open: files of SQLite, or databases of one
 * PostgreSQL.
 */
import { closeSync, copyFileSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { runSql, startPostgres } from '../../test/support/postgres.ts'
import { type Scope, temporaryFolder } from '../../test/support/temporary.ts'
import type { Engine } from '../processes.ts'
import { findStuffing, type Sql, type StuffingName } from './stuffings.ts'

export interface Databases {
  /** The URL of an empty database. */
  make(): Promise<string>
  copy(url: string): Promise<string>
  drop(url: string): Promise<void>
  /** Inserts the rows. Returns false if the table does not exist. */
  stuff(url: string, name: StuffingName, order: Order): Promise<boolean>
}

type Order = Pick<Sql, 'app'> & { readonly rows: number }
type Column = {
  readonly name: string
  readonly type: string
  readonly isNeeded: boolean
}

export const openDatabases = async (scope: Scope, engine: Engine): Promise<Databases> =>
  engine === 'SQLite' ? newFiles(scope) : newPostgresDatabases((await startPostgres(scope, leastLog)).url)

/** A table that is emptied and filled in one transaction is then not written to the log, which takes long. */
const leastLog = { wal_level: 'minimal', max_wal_senders: '0' }

function newFiles(scope: Scope): Databases {
  const make = async () => `sqlite:${join(temporaryFolder(scope), 'postern.db')}`
  return {
    make,
    async copy(url) {
      const to = await make()
      moveLogIntoFile(pathOf(url))
      copyFileSync(pathOf(url), pathOf(to))
      flush(pathOf(to))
      return to
    },
    drop: async (url) => rmSync(dirname(pathOf(url)), { recursive: true, force: true }),
    async stuff(url, name, { rows, ...own }) {
      const database = new DatabaseSync(pathOf(url))
      try {
        // Nobody else has the file open, and a file that is half stuffed is not used.
        database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -400000')
        const sql: Sql = {
          ...{ ...own, nowMs: Date.now(), isSqlite: true },
          pad: (width, value = 'n') => `printf('%0${width}d', ${value})`,
        }
        const { table } = findStuffing(name)
        const columns = database
          .prepare(`select name, type, "notnull" as needed, dflt_value from pragma_table_info('${table}')`)
          .all()
          .map(
            (row): Column => ({
              name: String(row.name),
              type: String(row.type),
              isNeeded: row.needed === 1 && row.dflt_value === null,
            }),
          )
        if (columns.length === 0) return false
        const from = `with recursive numbers (n) as
          (select 0 union all select n + 1 from numbers where n < ${rows - 1})`
        for (const statement of writeStatements(name, sql, { columns, from, into: table, rows }))
          database.exec(statement)
        return true
      } finally {
        database.exec('pragma journal_mode = wal')
        database.close()
        flush(pathOf(url))
      }
    },
  }
}

/** Otherwise the system would write the file during the measurement. */
function flush(path: string): void {
  const file = openSync(path, 'r+')
  fsyncSync(file)
  closeSync(file)
}

const pathOf = (url: string) => url.slice('sqlite:'.length)

/** A service that was killed leaves a write-ahead log. */
function moveLogIntoFile(path: string): void {
  const database = new DatabaseSync(path)
  database.exec('pragma wal_checkpoint(truncate)')
  database.close()
}

function newPostgresDatabases(server: string): Databases {
  let made = 0
  const create = async (more = '') => {
    const name = `noise_${made++}`
    await runSql(server, `create database ${name} ${more}`)
    return server.replace(/\/postgres$/, `/${name}`)
  }
  const nameOf = (url: string) => new URL(url).pathname.slice(1)
  return {
    make: () => create(),
    async copy(url) {
      await closeSessions(server, nameOf(url))
      return create(`template ${nameOf(url)} strategy file_copy`)
    },
    async drop(url) {
      await runSql(server, `drop database ${nameOf(url)} with (force)`)
    },
    async stuff(url, name, { rows, ...own }) {
      const sql: Sql = {
        ...{ ...own, nowMs: Date.now(), isSqlite: false },
        pad: (width, value = 'n') => `lpad((${value})::text, ${width}, '0')`,
      }
      const { table } = findStuffing(name)
      const found = await runSql<{ column_name: string; data_type: string; is_needed: boolean }>(
        url,
        `select column_name, data_type, is_nullable = 'NO' and column_default is null as is_needed
          from information_schema.columns
          where table_schema = 'postern' and table_name = '${table}' and is_generated = 'NEVER'`,
      )
      if (found.length === 0) return false
      const columns = found.map(
        (row): Column => ({
          ...{ name: row.column_name, type: row.data_type, isNeeded: row.is_needed },
        }),
      )
      const from = `with numbers (n) as (select generate_series(0, ${rows - 1}))`
      const into = `postern.${table}`
      const statements = writeStatements(name, sql, { columns, from, into, rows })
      const emptied = [
        `begin; create temp table kept as select * from ${into}; truncate ${into}`,
        `insert into ${into} select * from kept`,
      ]
      await runSql(url, [...emptied, ...statements, 'commit'].join(';\n'))
      // As the server's own maintenance would do, which would begin during the measurement.
      await runSql(url, `vacuum (analyze) ${into}`)
      await runSql(url, 'checkpoint')
      return true
    },
  }
}

/** A session of a process that was killed may last a moment longer. */
const closeSessions = (server: string, name: string) =>
  runSql(server, `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}'`)

type Insert = {
  readonly columns: readonly Column[]
  /** Makes the table `numbers`. */
  readonly from: string
  readonly into: string
  readonly rows: number
}

function writeStatements(name: StuffingName, sql: Sql, { columns, from, into, rows }: Insert): string[] {
  const { ageMs, also, row } = findStuffing(name)
  const given = row(sql, ageMs)
  const used = columns.filter((column) => column.name in given || column.isNeeded)
  const names = used.map((column) => `"${column.name}"`).join(', ')
  const values = used.map((column) => `cast(${given[column.name] ?? emptyOf(column.type)} as ${column.type})`)
  return [
    `insert into ${into} (${names}) ${from} select ${values.join(', ')} from numbers`,
    ...(also?.(sql) ?? []).map((statement) => statement.replaceAll('$rows', String(rows))),
  ]
}

/** The value of a column that is newer than these rows. */
function emptyOf(type: string): string {
  if (/json/i.test(type)) return `'{}'`
  if (/text|char/i.test(type)) return `''`
  if (/blob/i.test(type)) return `x''`
  return /bytea/i.test(type) ? `'\\x'` : '0'
}
