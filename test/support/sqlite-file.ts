/** A SQLite file that may be opened several times. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { newRing } from './service.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

export function newSqliteFile(t: Scope) {
  const path = join(temporaryFolder(t), 'postern.db')
  const ring = newRing()
  const open = async () => {
    const store = await openSqliteStore({ path, ring, queueMax: 1_000_000, onFatal: assert.fail })
    atEnd(t, () => store.close())
    return store
  }
  return { path, open }
}
