/** The store on SQLite as a command opens it, without threads. */
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { newRing } from '../support/service.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { newSender } from './subject.ts'

async function open(t: TestContext, onFatal: (error: Error) => void = assert.fail) {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 10, isService: false, onFatal })
  atEnd(t, () => store.close())
  return { path, store }
}

test('a command reports a missing database at its first write, and works again after the file returns', async (t) => {
  const { path, store } = await open(t)
  renameSync(path, `${path}.away`)
  await assert.rejects(store.probeWrite(), { name: 'StoreUnavailable', message: 'unable to open database file' })
  renameSync(`${path}.away`, path)
  await newSender(store, 'a')
  assert.equal((await store.listApps()).length, 1)
})

test('a command writes nothing after its database was found damaged, and leaves no file open', async (t) => {
  const faults: Error[] = []
  const { path, store } = await open(t, (error) => void faults.push(error))
  renameSync(path, `${path}.away`)
  writeFileSync(path, 'no database'.repeat(1000))
  for (let n = 0; n < 3; n++) await assert.rejects(store.probeWrite(), { name: 'StoreUnavailable' })
  assert.equal(faults.length, 1)
  assert.ok(!listOpenFiles().includes(path))
})

test('a command that makes hundreds of changes keeps the WAL short', async (t) => {
  const { path, store } = await open(t)
  await newSender(store, 'a')
  const sizes = []
  for (let n = 0; n < 4; n++) {
    for (let change = 0; change < 250; change++) await store.probeWrite()
    sizes.push(statSync(`${path}-wal`).size)
  }
  assert.equal(sizes.at(-1), sizes[0])
})

function listOpenFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return [] // it was that of the folder
    }
  })
}
