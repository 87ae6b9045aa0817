/** The rate-limit buckets of SQLite: their journal and their memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AppId, newId } from '../../src/domain/id.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { Buckets, findCallerBucket, recipientBuckets } from '../../src/store/sqlite/queue/buckets.ts'
import type { Store } from '../../src/store/store.ts'
import { newSqliteFile } from '../support/sqlite-file.ts'
import { atEnd } from '../support/temporary.ts'
import { kinds, newSender, request, type Sender } from './subject.ts'

const enqueueTo = (store: Store, sender: Sender, to: string) => store.enqueue(request(store, sender, { to }))

test('a recipient’s limit holds after a restart, and for two processes at once', async (t) => {
  const { open } = newSqliteFile(t)
  const first = await open()
  const sender = await newSender(first, 'acme', { recipientPerHour: 3 })
  assert.deepEqual(kinds([await enqueueTo(first, sender, 'ada@x.org')]), { queued: 1 })
  await first.close()
  const [second, third] = [await open(), await open()]
  const answers = []
  for (const store of [second, third, second, third]) answers.push(await enqueueTo(store, sender, 'ada@x.org'))
  assert.deepEqual(kinds(answers), { queued: 2, recipient_rate_limited: 2 })
})

test('the journal of refilled buckets is deleted, and nothing else', async (t) => {
  const { path, open } = newSqliteFile(t)
  const store = await open()
  const sender = await newSender(store, 'acme')
  await enqueueTo(store, sender, 'ada@x.org')
  const connection = new Connection(path)
  atEnd(t, () => connection.close())
  const rows = () => connection.sql('select id, until_us from bucket_journal').all()
  assert.equal(rows().length, 1)
  connection.sql('update bucket_journal set until_us = 1').run()
  await enqueueTo(store, sender, 'bea@x.org')
  await store.maintain()
  assert.deepEqual(
    rows().map(({ id }) => id),
    [2],
  )
})

test('buckets that find no place in memory stand in the table, now and after a restart', async (t) => {
  const { path, open } = newSqliteFile(t)
  await (await open()).close()
  const connection = new Connection(path)
  atEnd(t, () => connection.close())
  const slots = 1024
  const charge = (buckets: Buckets, bucket: number, arrivalUs: number) => {
    const journaled = buckets.write(connection, [[bucket, arrivalUs]], 0)
    if (journaled !== null) buckets.keep(journaled)
  }
  const inTable = (bucket: number) =>
    connection.sql('select arrival_us from rate_bucket where bucket = ?').get(bucket)?.arrival_us
  const buckets = new Buckets(slots)
  for (let bucket = 1; bucket <= 2 * slots; bucket++) charge(buckets, bucket, 5_000_000)
  const held = 0.75 * slots
  assert.equal(buckets.arrivalUs(held), 5_000_000)
  assert.equal(buckets.arrivalUs(held + 1), 0)
  assert.equal(inTable(held), undefined)
  assert.equal(inTable(held + 1), 5_000_000)
  charge(buckets, 1, 6_000_000)
  assert.equal(buckets.arrivalUs(1), 6_000_000, 'a bucket in memory stays there')
  assert.equal(inTable(1), undefined)
  const later = new Buckets(slots)
  later.catchUp(connection, 0)
  assert.deepEqual([later.arrivalUs(1), later.arrivalUs(held), later.arrivalUs(held + 1)], [6_000_000, 5_000_000, 0])
})

test('callers and mailboxes whose hashes begin with the same 48 bits have buckets of their own', () => {
  const [one, other] = ['AAAAAAAAAAAAA', 'AAAAAAAABBBBB'] as const
  const caller = { appId: newId('app', 0) as AppId, keyId: null }
  assert.notEqual(
    findCallerBucket(() => one, caller),
    findCallerBucket(() => other, caller),
  )
  const find = (mailbox: string) => recipientBuckets({ mailbox, address: `${mailbox}AAAAAAAAAAA` }).mailbox
  assert.notEqual(find(one), find(other))
})
