/** The pages that an accepted email costs in SQLite: a figure of its design (ADR 7). */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { newSender, request, type Sender } from '../conformance/subject.ts'
import { newSqliteFile } from '../support/sqlite-file.ts'

test('an accepted email costs at most 3.9 pages of the WAL, in groups of 64', async (t) => {
  const { path, open } = newSqliteFile(t)
  const filled = await open()
  const senders = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      newSender(filled, `app${n}`, { keyPerMinute: 1_000_000, daily: 1_000_000 }),
    ),
  )
  let serial = 0
  const group = (store: Store, size: number) =>
    Promise.all(
      Array.from({ length: size }, async () => {
        const n = serial++
        const { kind } = await store.enqueue(
          request(store, senders[n % senders.length] as Sender, { to: `p${n}@x.org`, idem: `k${n}` }),
        )
        assert.equal(kind, 'queued')
      }),
    )
  for (let n = 0; n < 400; n++) await group(filled, 256)
  await filled.close() // copies the WAL into the file, and deletes it
  const store = await open()
  const groups = 16
  for (let n = 0; n < groups; n++) await group(store, 64)
  const pages = (statSync(`${path}-wal`).size - 32) / (4096 + 24)
  assert.ok(pages / (64 * groups) <= 3.9, `${pages / (64 * groups)} pages`)
  t.diagnostic(`${(pages / (64 * groups)).toFixed(2)} pages`)
})
