/** `POSTERN_DATABASE_URL` and `POSTERN_DATABASE_LISTEN_URL`. */
import type { DatabaseAddress, PostgresAddress } from '../store/database-address.ts'
import { parseDatabaseUrl } from './database-url.ts'
import type { Reader } from './reader.ts'

export type DatabaseConfig = {
  readonly database: DatabaseAddress
  /** For the worker's session, if that is not `database`. */
  readonly databaseSession: PostgresAddress | null
}

const name = 'POSTERN_DATABASE_URL'
const listenName = 'POSTERN_DATABASE_LISTEN_URL'

export function readDatabase(reader: Reader): DatabaseConfig {
  const { fault, required, text } = reader
  const database = parse(reader, name, required(name))
  const listenUrl = text(listenName)
  if (listenUrl === '') return { database, databaseSession: null }
  const listen = parse(reader, listenName, listenUrl)
  if (database.engine !== 'postgres' || listen.engine !== 'postgres') {
    fault(`${listenName} and ${name} must both be postgres:// URLs`)
    return { database, databaseSession: null }
  }
  return { database, databaseSession: { ...listen, schema: database.schema } }
}

function parse({ fault }: Reader, variable: string, url: string): DatabaseAddress {
  const parsed = parseDatabaseUrl(url)
  if ('engine' in parsed) return parsed
  if (url !== '') fault(`${variable}: ${parsed.fault}`)
  return { engine: 'sqlite', path: '' }
}
