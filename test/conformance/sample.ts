/**
 * A database as a version leaves it, with queued emails and rows in all tables that `postern copy` copies.
 * `npm run release` writes it to `releases/VERSION.sample.gz`, and tests upgrade it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { root } from '../../scripts/build.ts'
import { formatKeyRing } from '../../src/store/crypto/key-ring.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { postern } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { dumpTables } from '../support/dump.ts'
import { startPostgres } from '../support/postgres.ts'
import { newRing, startTestService, validBody } from '../support/service.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { nowMs, stuff } from './stuffed-rows.ts'

export type Sample = {
  /** The store's clock when it was made, in milliseconds since 1970 UTC. */
  readonly nowMs: number
  /** The value of `POSTERN_SECRET_KEYS`. */
  readonly ring: string
  /** A delivery key of the app whose emails are queued. */
  readonly key: string
  /** The recipients of the queued emails. */
  readonly recipients: readonly string[]
  /** The file of SQLite, in base64. */
  readonly sqlite: string
  /** The rows of each table of PostgreSQL, as JSON. */
  readonly postgres: Readonly<Record<string, readonly unknown[]>>
}

const rowsOfEach = 40
const fileOf = (version: string): string => join(root, `releases/${version}.sample.gz`)

export const readSample = (version: string): Sample => JSON.parse(gunzipSync(readFileSync(fileOf(version))).toString())

async function writeSample(version: string): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    const sample = await makeSample({ after: (end) => void ends.push(end) })
    writeFileSync(fileOf(version), gzipSync(JSON.stringify(sample), { level: 9 }))
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

async function makeSample(scope: Scope): Promise<Sample> {
  const ring = newRing()
  const path = join(temporaryFolder(scope), 'postern.db')
  await (await openSqliteStore({ path, ring, queueMax: 1000, onFatal })).close()
  const connection = new Connection(path)
  stuff(connection, rowsOfEach)
  connection.connection.exec(
    "delete from queue; update queue_depth set count = 0; insert into report_source (source, heard_at) values ('mail', 1)",
  )
  connection.close()
  // The queued emails of the rows above cannot be decrypted.
  const service = await startTestService(scope, {
    database: databaseAt(`sqlite:${path}`),
    ring,
    nowMs,
    roles: new Set(['api']),
  })
  const recipients = ['magic_link', 'email_verification', 'password_reset'].map((type) => `${type}@example.com`)
  for (const to of recipients) {
    const body = validBody({ to, type: to.split('@')[0] }, nowMs)
    const { status } = await service.post(body, { 'idempotency-key': to })
    if (status !== 202) throw new Error(`the email to ${to} was answered ${status}`)
  }
  await service.stop()
  const file = new Connection(path)
  file.connection.exec("update queue set state = 'deferred', attempts = 1 where type = 'password_reset'")
  file.close()
  const sqlite = readFileSync(path).toString('base64')
  const secrets = { POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  const { url } = await startPostgres(scope)
  const target = join(path, '../target')
  writeFileSync(target, url, { mode: 0o600 })
  const copied = await postern({ ...secrets, POSTERN_DATABASE_URL: `sqlite:${path}` }, [
    'copy',
    '--to',
    `file:${target}`,
  ])
  if (copied.code !== 0) throw new Error(copied.err)
  const tables = await dumpTables(databaseAt(url))
  return {
    ...{ nowMs, ring: secrets.POSTERN_SECRET_KEYS, key: service.key, recipients },
    sqlite,
    postgres: Object.fromEntries(
      [...tables].map(([table, rows]) => [
        table,
        rows
          .split('\n')
          .filter(Boolean)
          .map((row) => JSON.parse(row)),
      ]),
    ),
  }
}

const onFatal = (error: Error) => {
  throw error
}

if (import.meta.main) {
  const [, , version] = process.argv
  if (version === undefined) throw new Error('give a version')
  await writeSample(version)
}
