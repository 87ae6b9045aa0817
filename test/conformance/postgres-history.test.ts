/** The parts of the history on PostgreSQL: cut ahead of the mail, dropped when they are old. */
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
import { claim, day, delivered, newSender, request, type Sender } from './subject.ts'

async function open(t: TestContext, { stores = 1 } = {}) {
  const url = await postgresUrl(t)
  const [schema, address, ring, clock] = [schemaOf(url), databaseAt(url), newRing(), newClockOffset()]
  assert.ok(address.engine === 'postgres')
  const opened: Store[] = []
  for (let n = 0; n < stores; n++) {
    const store = await openPostgresStore({ address, ring, queueMax: 1_000_000, clock })
    atEnd(t, () => store.close())
    opened.push(store)
  }
  const [store] = opened
  assert.ok(store)
  const inSchema = <Row>(text: string) => runSql<Row>(url, text.replaceAll('{}', `"${schema}"`))
  return {
    ...{ store, stores: opened, url, schema, inSchema },
    sender: await newSender(store, 'a'),
    advance: (byMs: number) => moveClock(clock, byMs),
    /** By the name of each part, its bounds and how many rows are in it. */
    async listParts(): Promise<Record<string, string>> {
      const rows = await inSchema<{ name: string; bounds: string }>(
        `select relname as name, pg_get_expr(relpartbound, c.oid) as bounds from pg_class c join pg_inherits on inhrelid = c.oid
         where inhparent = '{}.history'::regclass order by relname`,
      )
      const parts: Record<string, string> = {}
      for (const { name, bounds } of rows) {
        const [row] = await inSchema<{ n: number }>(`select count(*)::int as n from {}.${name}`)
        parts[name] = `${bounds.replaceAll(/FOR VALUES |[()']/g, '')}: ${row?.n}`
      }
      return parts
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

/** Midnight (UTC), so many days from the day of `nowMs`. */
const midnight = (nowMs: number, days: number): number => Math.floor(nowMs / day) * day + days * day
const nameOf = (ms: number): string => `history_until_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '_')}`
let serial = 0
const idAt = (ms: number): EmailId => `${idFloor('em', ms)}${String(serial++).padStart(16, '0')}` as EmailId
const boundOf = (ms: number): string => idFloor('em', ms)

test('parts are cut three days ahead, one a day, and dropped a month later with their mail', async (t) => {
  const { store, sender, advance, inSchema, listParts } = await open(t)
  const first = await send(store, sender)
  assert.deepEqual(await listParts(), { history_rest: 'FROM MINVALUE TO MAXVALUE: 1' })
  const begunAt = store.now()
  const end = (days: number) => midnight(begunAt, days)
  await store.maintain()
  assert.deepEqual(await listParts(), {
    [nameOf(end(3))]: `FROM MINVALUE TO ${boundOf(end(3))}: 1`,
    history_rest: `FROM ${boundOf(end(3))} TO MAXVALUE: 0`,
  })
  for (let days = 1; days <= 5; days++) {
    advance(day)
    await store.maintain()
  }
  const last = await send(store, sender)
  const middle = [4, 5, 6, 7, 8].map((n) => [
    nameOf(end(n)),
    `FROM ${boundOf(end(n - 1))} TO ${boundOf(end(n))}: ${n === 6 ? 1 : 0}`,
  ])
  assert.deepEqual(await listParts(), {
    [nameOf(end(3))]: `FROM MINVALUE TO ${boundOf(end(3))}: 1`,
    ...Object.fromEntries(middle),
    history_rest: `FROM ${boundOf(end(8))} TO MAXVALUE: 0`,
  })
  advance(28 * day) // the first part is old as a whole
  await store.maintain()
  const [, [oldest, bounds] = []] = Object.entries(await listParts())
  assert.deepEqual([oldest, bounds], [nameOf(end(4)), `FROM MINVALUE TO ${boundOf(end(4))}: 0`])
  assert.equal(await store.findEmail(first), null)
  assert.equal((await store.findEmail(last))?.state, 'delivered')
  const left = await inSchema<{ n: number }>(
    `select count(*)::int as n from pg_class where relname = '${nameOf(end(3))}' and relnamespace = '{}'::regnamespace`,
  )
  assert.deepEqual(left, [{ n: 0 }])
})

test('every id has a part: one from before all of them, and one from a clock that was years ahead', async (t) => {
  const { store, sender, advance, listParts } = await open(t)
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
  const names = Object.keys(await listParts())
  assert.equal(names.at(-1), nameOf(midnight(store.now(), 700)))
  assert.equal((await store.findEmail(ahead))?.state, 'delivered')
  assert.equal(await store.findEmail(old), null)
  await send(store, sender)
})

test('old mail of a part that holds other mail is deleted row by row', async (t) => {
  const { store, sender, advance } = await open(t)
  const old = await send(store, sender)
  await store.maintain()
  advance(2 * day) // the first part is of three days
  const kept = await send(store, sender)
  advance(29 * day)
  while ((await store.maintain()).more);
  assert.equal(await store.findEmail(old), null)
  assert.equal((await store.findEmail(kept))?.state, 'delivered')
})

test('processes that look after the parts at once make each change once', async (t) => {
  const { store, stores, sender, advance, listParts } = await open(t, { stores: 4 })
  await send(store, sender)
  for (let days = 0; days < 36; days++) {
    // It waited for the others, or one of them was faster between two of its steps.
    for (const made of await Promise.allSettled(stores.map((each) => each.maintain())))
      if (made.status === 'rejected') assert.match(made.reason.message, /lock timeout|constraint .* does not exist/)
    advance(day)
  }
  for (const each of stores) await each.maintain()
  const names = Object.keys(await listParts())
  const wanted = Array.from({ length: 33 }, (_, n) => nameOf(midnight(store.now(), n - 29)))
  assert.deepEqual(names, ['history_rest', ...wanted])
})

test('a backup that reads the history delays a turn, and no mail', async (t) => {
  const { store, schema, sender, advance, url, listParts } = await open(t)
  await store.maintain()
  const before = await listParts()
  const backup = await openClient(t, url)
  await backup.query(`begin; select from "${schema}".history`)
  advance(day)
  await assert.rejects(store.maintain(), /lock timeout/)
  await send(store, sender)
  await store.maintain()
  assert.deepEqual(Object.keys(await listParts()), Object.keys(before))
  await backup.query('commit')
  advance(11 * 60_000)
  await store.maintain()
  assert.equal(Object.keys(await listParts()).length, Object.keys(before).length + 1)
})

test('a day is cut soon after midnight, also if the last look was a minute ago', async (t) => {
  const { store, advance, listParts } = await open(t)
  advance(midnight(store.now(), 1) - store.now() - 30_000)
  await store.maintain()
  advance(60_000)
  await store.maintain()
  const wanted = [2, 3].map((days) => nameOf(midnight(store.now(), days)))
  assert.deepEqual(Object.keys(await listParts()), ['history_rest', ...wanted])
})

test('a part whose drop did not end goes later', async (t) => {
  const { store, advance, inSchema } = await open(t)
  await inSchema('create table {}.history_until_2020_01_02 (like {}.history including all)')
  await store.maintain()
  advance(11 * 60_000)
  await store.maintain()
  assert.deepEqual(await inSchema("select to_regclass('{}.history_until_2020_01_02') as found"), [{ found: null }])
})

test('the table of the version before becomes a part as it is', async (t) => {
  const { store, sender, inSchema, listParts } = await open(t)
  const id = await send(store, sender)
  const file = () =>
    inSchema<{ file: string }>(
      `select pg_relation_filepath(inhrelid) as file from pg_inherits join {}.history on history.tableoid = inhrelid`,
    )
  const before = await file()
  await store.maintain()
  assert.equal(Object.keys(await listParts()).length, 2)
  assert.deepEqual(await file(), before)
  assert.equal((await store.findEmail(id))?.state, 'delivered')
})

test('an email is found, and a report recorded, in one part', async (t) => {
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
