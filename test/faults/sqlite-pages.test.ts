/** The pages that an accepted email costs in SQLite: a figure of its design (ADR 7). */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { hourMs } from '../../src/domain/duration.ts'
import type { Store } from '../../src/store/store.ts'
import { newSender, request, type Sender } from '../conformance/subject.ts'
import { newSqliteFile } from '../support/sqlite-file.ts'

test('an accepted email costs at most 3.6 pages of the WAL in groups of 64, also with 10,000 suppressions', async (t) => {
  const { path, open } = newSqliteFile(t)
  const filled = await open()
  const senders = await Promise.all(
    Array.from({ length: 100 }, (_, n) => newSender(filled, `app${n}`, { keyPerMinute: 1_000_000, daily: 1_000_000 })),
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
  const groups = 16
  const measure = async () => {
    const store = await open()
    for (let n = 0; n < groups; n++) await group(store, 64)
    const pages = (statSync(`${path}-wal`).size - 32) / (4096 + 24) / (64 * groups)
    await store.close()
    return pages
  }
  const without = await measure()
  suppressMany(path, 10_000)
  const beside = await measure()
  t.diagnostic(`${without.toFixed(2)} pages, ${beside.toFixed(2)} with suppressions`)
  assert.ok(without <= 3.6 && beside <= 3.6, `${without}, ${beside} pages`)
})

/** Suppressions of other recipients, which have not ended. */
function suppressMany(path: string, count: number): void {
  const until = Date.now() + hourMs
  const database = new DatabaseSync(path)
  database.exec(`with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ${count})
    insert into suppression (suppression_id, app_id, recipient, reason, strikes, at, until, invitations_until,
        forget_at, bounced_at, destination)
      select 'sp_' || n, app_id, hex(randomblob(16)), 'no_mailbox', 1, ${Date.now()}, ${until}, ${until}, ${until}, 0, 'other'
        from counted join (select app_id, row_number() over () as k from app) on k = 1 + n % 100`)
  assert.equal(database.prepare('select count(*) as n from suppression').get()?.n, count)
  database.close()
}
