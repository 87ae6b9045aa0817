/** What is true of a database that is a file. */
import assert from 'node:assert/strict'
import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSecretKey } from '../../src/store/key-ring.ts'
import { Database } from '../../src/store/sqlite/database.ts'
import { postern, posternJson, type Variables } from '../support/cli.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'

const sqliteEnvironment = (scope: Scope): Variables => ({
  POSTERN_DATABASE_URL: `sqlite:${join(temporaryFolder(scope), 'postern.db')}`,
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
})
const pathOf = (env: Variables): string => (env.POSTERN_DATABASE_URL ?? '').replace('sqlite:', '')

test('rows 6 and 10: a newer schema and a damaged file are refused, and left as they are', async (t) => {
  const own = sqliteEnvironment(t)
  await posternJson(own, ['migrate'])
  const path = pathOf(own)
  const database = new Database(path)
  database.connection.exec('insert into migration values (999, 0)')
  database.close()
  const newer = await postern(own, ['app', 'list'])
  assert.equal(newer.code, 1)
  assert.match(newer.err, /schema 999.*newer Postern/)
  writeFileSync(path, 'this is no database, and it must not be made one'.repeat(100))
  const before = readFileSync(path)
  const damaged = await postern(own, ['app', 'list'])
  assert.equal(damaged.code, 1)
  assert.match(damaged.err, /damaged/)
  assert.deepEqual(readFileSync(path), before)
})

test('another user than the file’s owner is refused', {
  skip: process.getuid?.() !== 0 && 'skipped: needs root',
}, async (t) => {
  const own = sqliteEnvironment(t)
  await posternJson(own, ['migrate'])
  chownSync(pathOf(own), 12_345, 12_345)
  const ran = await postern(own, ['app', 'list'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /belongs to user 12345/)
})
