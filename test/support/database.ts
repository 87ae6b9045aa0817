/** The database of one test: SQLite, or PostgreSQL if `POSTERN_TEST_ENGINE=postgres`. */
import { join } from 'node:path'
import { parseDatabaseUrl } from '../../src/config/database-url.ts'
import type { DatabaseAddress } from '../../src/store/database-address.ts'
import { postgresUrl } from './postgres.ts'
import { type Scope, temporaryFolder } from './temporary.ts'

export const engine = process.env.POSTERN_TEST_ENGINE === 'postgres' ? 'postgres' : 'sqlite'

/** A value for `POSTERN_DATABASE_URL`. */
export const testDatabaseUrl = async (scope: Scope): Promise<string> =>
  engine === 'postgres' ? postgresUrl(scope) : `sqlite:${join(temporaryFolder(scope), 'postern.db')}`

export async function testDatabase(scope: Scope): Promise<DatabaseAddress> {
  return databaseAt(await testDatabaseUrl(scope))
}

export function databaseAt(url: string): DatabaseAddress {
  const address = parseDatabaseUrl(url)
  if ('fault' in address) throw new Error(address.fault)
  return address
}
