/** The partitions of the history on PostgreSQL: created ahead of the mail, dropped when they are old. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type EmailId, idFloor } from '../../src/domain/id.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import type { Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { openClient, postgresUrl, runSql, schemaOf } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { claim, day, delivered, newSender, request, type Sender } from './subject.ts'

async function open(t: TestContext, { stores = 1 } = {}) {
  const url = await postgresUrl(t)
  const [schema, address, ring, clock] = [schemaOf(url), databaseAt(url), newRing(), newClockOffset()]
  assert.ok(address.engine === 'postgres')
  const opened: Store[] = []
  const reopen = async () => {
    const store = await openPostgresStore({ address, ring, queueMax: 1_000_000, clock })
    atEnd(t, () => store.close())
    opened.push(store)
    return store
  }
  const store = await reopen()
  while (opened.length < stores) await reopen()
  moveClock(clock, midnight(store.now(), 0) + 12 * hour - store.now()) // no test runs over midnight
  const inSchema = <Row>(text: string) => runSql<Row>(url, text.replaceAll('{}', `"${schema}"`))
  return {
    ...{ store, stores: opened, reopen, url, schema, inSchema },
    sender: await newSender(store, 'a'),
    advance: (byMs: number) => moveClock(clock, byMs),
    /** By the name of each partition, its bounds and how many rows are in it. */
    async listPartitions(): Promise<Record<string, string>> {
      const rows = await inSchema<{ name: string; bounds: string }>(
        `select relname as name, pg_get_expr(relpartbound, c.oid) as bounds from pg_class c join pg_inherits on inhrelid = c.oid
         where inhparent = '{}.history'::regclass order by relname`,
      )
      const found: Record<string, string> = {}
      for (const { name, bounds } of rows) {
        const [row] = await inSchema<{ n: number }>(`select count(*)::int as n from {}.${name}`)
        found[name] = `${bounds.replaceAll(/FOR VALUES |[()']/g, '')}: ${row?.n}`
      }
      return found
    },
  }
}

/** Accepts an email and delivers it. Ids of `newId` never go back, in all tests of a process. */
async function send(store: Store, sender: Sender, id = idAt(store.now())): Promise<EmailId> {
  const result = await store.enqueue(request(store, sender, { id }))
  assert.ok(result.kind === 'queued')
  for (const held of await claim(store)) assert.equal(await store.recordOutcome(held, delivered), true)
  return result.emailId
}

const hour = 3_600_000

/** Midnight (UTC), so many days from the day of `nowMs`. */
const midnight = (nowMs: number, days: number): number => Math.floor(nowMs / day) * day + days * day
const nameOf = (ms: number): string => `history_until_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '_')}`
let serial = 0
const idAt = (ms: number): EmailId => `${idFloor('em', ms)}${String(serial++).padStart(16, '0')}` as EmailId
const boundOf = (ms: number): string => idFloor('em', ms)

test('days are created three days ahead, one a day, and dropped a month later with their mail', async (t) => {
  const { store, sender, advance, inSchema, listPartitions } = await open(t)
  const first = await send(store, sender)
  assert.deepEqual(await listPartitions(), { history_rest: 'FROM MINVALUE TO MAXVALUE: 1' })
  const begunAt = store.now()
  const end = (days: number) => midnight(begunAt, days)
  await store.maintain()
  assert.deepEqual(await listPartitions(), {
    [nameOf(end(3))]: `FROM MINVALUE TO ${boundOf(end(3))}: 1`,
    history_rest: `FROM ${boundOf(end(3))} TO MAXVALUE: 0`,
  })
  for (let days = 1; days <= 5; days++) {
    advance(day)
    await store.maintain()
  }
  const last = await send(store, sender)
  const bounds = (n: number) => `FROM ${boundOf(end(n - 1))} TO ${boundOf(end(n))}: ${n === 6 ? 1 : 0}`
  assert.deepEqual(await listPartitions(), {
    [nameOf(end(3))]: `FROM MINVALUE TO ${boundOf(end(3))}: 1`,
    ...Object.fromEntries([4, 5, 6, 7, 8].map((n) => [nameOf(end(n)), bounds(n)])),
    history_rest: `FROM ${boundOf(end(8))} TO MAXVALUE: 0`,
  })
  advance(28 * day) // the first partition is old as a whole, and the rest was not looked at for weeks
  await store.maintain()
  assert.deepEqual(await listPartitions(), {
    history_oldest: `FROM MINVALUE TO ${boundOf(end(3))}: 0`,
    ...Object.fromEntries([4, 5, 6, 7, 8].map((n) => [nameOf(end(n)), bounds(n)])),
    [nameOf(end(36))]: `FROM ${boundOf(end(8))} TO ${boundOf(end(36))}: 0`,
    history_rest: `FROM ${boundOf(end(36))} TO MAXVALUE: 0`,
  })
  assert.equal(await store.findEmail(first), null)
  assert.equal((await store.findEmail(last))?.state, 'delivered')
  advance(day)
  await store.maintain()
  assert.equal(Object.keys(await listPartitions())[0], 'history_oldest')
  const left = `select count(*)::int as n from pg_class where relnamespace = '{}'::regnamespace and relname like 'history%2%'`
  const parts = await inSchema<{ n: number }>(`${left} and relkind = 'r'`)
  assert.deepEqual(parts, [{ n: Object.keys(await listPartitions()).length - 2 }], 'dropped tables are gone')
})

test('every id has a partition: of a late outcome, and of a clock that was years ahead', async (t) => {
  const { store, sender, advance, listPartitions } = await open(t)
  for (let days = 0; days < 40; days += 10) {
    await store.maintain()
    advance(10 * day)
  }
  await store.maintain()
  const old = await send(store, sender, idAt(store.now() - 300 * day))
  assert.equal((await store.findEmail(old))?.state, 'delivered')
  const ahead = await send(store, sender, idAt(store.now() + 700 * day))
  advance(day)
  await store.maintain()
  const next = midnight(store.now(), 3)
  assert.equal((await listPartitions())[nameOf(next)], `FROM ${boundOf(next - day)} TO ${boundOf(next)}: 0`)
  assert.equal((await listPartitions()).history_rest, `FROM ${boundOf(next)} TO MAXVALUE: 1`)
  assert.equal((await store.findEmail(ahead))?.state, 'delivered')
  assert.equal(await store.findEmail(old), null)
})

test('old mail of a partition that holds other mail is deleted row by row', async (t) => {
  const { store, sender, advance } = await open(t)
  const old = await send(store, sender)
  await store.maintain()
  advance(2 * day) // the first partition is of three days
  const kept = await send(store, sender)
  advance(29 * day)
  while ((await store.maintain()).more);
  assert.equal(await store.findEmail(old), null)
  assert.equal((await store.findEmail(kept))?.state, 'delivered')
})

test('mail of the day that ended last is not deleted row by row: the day is about to be dropped', async (t) => {
  const { store, sender, advance, url, schema } = await open(t)
  await store.maintain()
  advance(3 * day)
  await store.maintain()
  const kept = await send(store, sender)
  const backup = await openClient(t, url)
  await backup.query(`begin; select from "${schema}".history`)
  advance(30.5 * day + hour)
  await assert.rejects(store.maintain(), /lock timeout/)
  while ((await store.maintain()).more);
  assert.equal((await store.findEmail(kept))?.state, 'delivered')
  advance(12 * hour)
  await assert.rejects(store.maintain(), /lock timeout/)
  while ((await store.maintain()).more);
  assert.equal(await store.findEmail(kept), null, 'a backup that takes long delays it by half a day')
})

test('processes that maintain the partitions at once make each change once', async (t) => {
  const { store, stores, sender, advance, listPartitions } = await open(t, { stores: 4 })
  await send(store, sender)
  for (let days = 0; days < 36; days++) {
    for (const made of await Promise.allSettled(stores.map((each) => each.maintain())))
      if (made.status === 'rejected') assert.match(made.reason.message, /lock timeout/)
    advance(hour) // those that waited too long for the others try again
    for (const each of stores) await each.maintain()
    advance(day - hour)
  }
  for (const each of stores) await each.maintain()
  const wanted = Array.from({ length: 33 }, (_, n) => nameOf(midnight(store.now(), n - 29)))
  assert.deepEqual(Object.keys(await listPartitions()), ['history_oldest', 'history_rest', ...wanted])
})

test('a backup that reads the history delays a change, and mail behind it for a moment only', async (t) => {
  const { store, schema, sender, advance, url, inSchema, listPartitions } = await open(t)
  await store.maintain()
  const before = await listPartitions()
  const backup = await openClient(t, url)
  await backup.query(`begin; select from "${schema}".history`)
  advance(day)
  const waiting = assert.rejects(store.maintain(), /lock timeout/)
  const waits = `select 1 from pg_locks where not granted and relation = '{}.history'::regclass`
  await eventually(async () => (await inSchema(waits)).length > 0)
  await send(store, sender) // its functions wait for 1.5 s at most
  await waiting
  assert.deepEqual(Object.keys(await listPartitions()), Object.keys(before))
  await backup.query('commit')
  advance(11 * 60_000)
  await store.maintain()
  assert.equal(Object.keys(await listPartitions()).length, Object.keys(before).length + 1)
})

const many = 10_001

/** So many rows as after an upgrade, in the rest. */
const fillRest = ({ inSchema, store }: Awaited<ReturnType<typeof open>>) =>
  inSchema(`insert into {}.history (email_id, app_id, type, state, attempts, lost_leases, accepted_at, expires_at, finished_at,
      recipient, trail) select '${boundOf(store.now() - day)}' || lpad(n::text, 16, '0'), 'app_1', 'magic_link', 'delivered', 1, 0, 1,
      1, 1, 'r', '[]' from generate_series(1, ${many}) n`)

const constraints = "select conname from pg_constraint where contype = 'c' and connamespace = '{}'::regnamespace"

test('the table of the version before becomes a partition as it is, with its indexes', async (t) => {
  const bed = await open(t)
  const { sender, inSchema, listPartitions, reopen, store } = bed
  await inSchema(`alter table {}.history detach partition {}.history_rest; drop table {}.history;
    alter table {}.history_rest rename to history; delete from {}.migration where version >= 2;
    alter table {}.delivery_key drop column networks;
    ${['pkey', 'recipient', 'app', 'trouble', 'app_trouble'].map((name) => `alter index {}.history_rest_${name} rename to history_${name}`).join(';')}`)
  const id = await send(store, sender)
  await fillRest(bed)
  const files = () =>
    inSchema<{ file: string }>(`select pg_relation_filepath(oid) as file from pg_class where relkind in ('r', 'i')
      and relnamespace = '{}'::regnamespace and oid in (select '{}.history'::regclass union select indexrelid from pg_index
        where indrelid = '{}.history'::regclass union select inhrelid from pg_inherits where inhparent = '{}.history'::regclass
        union select indexrelid from pg_index join pg_inherits on indrelid = inhrelid where inhparent = '{}.history'::regclass)
      order by relname`)
  const before = (await files()).length
  assert.equal(before, 6)
  const old = await files()
  await inSchema('alter table {}.app drop column transport; drop table {}.transport, {}.inbox_email') // claims above read it
  const next = await reopen()
  await next.maintain()
  const end = midnight(store.now(), 36)
  assert.deepEqual(await listPartitions(), {
    history_rest: `FROM ${boundOf(end)} TO MAXVALUE: 0`,
    [nameOf(end)]: `FROM MINVALUE TO ${boundOf(end)}: ${many + 1}`,
  })
  const now = new Set((await files()).map(({ file }) => file))
  assert.ok(
    old.every(({ file }) => now.has(file)),
    'nothing was copied',
  )
  assert.deepEqual(await inSchema(constraints), [])
  assert.equal((await next.findEmail(id))?.state, 'delivered')
})

for (const isFull of [true, false])
  test(`a ${isFull ? 'full' : 'nearly empty'} rest whose process died while it became a partition is left to the next`, async (t) => {
    const bed = await open(t)
    const { inSchema, listPartitions, sender, store } = bed
    if (isFull) await fillRest(bed)
    const end = midnight(store.now(), 40) // another process began it, a few days ago
    await inSchema(
      `alter table {}.history_rest add constraint ${nameOf(end)} check (email_id < '${boundOf(end)}') not valid`,
    )
    await send(store, sender)
    await store.maintain()
    assert.deepEqual(Object.keys(await listPartitions()), ['history_rest', nameOf(end)])
    assert.deepEqual(await inSchema(constraints), [])
    await send(store, sender, idAt(store.now() + 700 * day))
  })

test('a full rest with an id from a clock that was ahead becomes a partition up to that id', async (t) => {
  const bed = await open(t)
  const id = await send(bed.store, bed.sender, idAt(bed.store.now() + 700 * day))
  await fillRest(bed)
  await bed.store.maintain()
  assert.deepEqual(Object.keys(await bed.listPartitions()), ['history_rest', nameOf(midnight(bed.store.now(), 701))])
  assert.equal((await bed.store.findEmail(id))?.state, 'delivered')
})

test('several processes make one partition of a full rest', async (t) => {
  const bed = await open(t, { stores: 4 })
  await fillRest(bed)
  for (const made of await Promise.allSettled(bed.stores.map((each) => each.maintain())))
    if (made.status === 'rejected') assert.match(made.reason.message, /lock timeout|constraint .* does not exist/)
  bed.advance(11 * 60_000)
  for (const each of bed.stores) await each.maintain()
  assert.deepEqual(Object.keys(await bed.listPartitions()), ['history_rest', nameOf(midnight(bed.store.now(), 36))])
  assert.deepEqual(await bed.inSchema(constraints), [])
})

test('an email is found, and a report recorded, in one partition', async (t) => {
  const { store, schema, sender, advance, url } = await open(t)
  for (let days = 0; days < 5; days++) {
    await store.maintain()
    advance(day)
  }
  const id = await send(store, sender)
  const client = await openClient(t, url)
  for (const [n, statement] of ['select * from {}', "update {} set reason = 'x'"].entries())
    for (const plan of ['force_generic_plan', 'force_custom_plan']) {
      const text = `${statement.replace('{}', `"${schema}".history`)} where email_id = $1`
      await client.query(`set plan_cache_mode = ${plan}; prepare ${plan}_${n} as ${text}`)
      const { rows } = await client.query(`explain (analyze, costs off, timing off) execute ${plan}_${n}('${id}')`)
      const scans = rows.map((row) => row['QUERY PLAN'] as string).filter((line) => /Scan .*history_/.test(line))
      assert.equal(scans.filter((line) => !line.includes('never executed')).length, 1, scans.join('\n'))
    }
})
