/** Fills a database by SQL with finished emails of the last days (`POSTERN_BENCH_EMAILS`, or a million). */
import { DatabaseSync } from 'node:sqlite'
import { dayMs } from '../src/domain/duration.ts'
import { idFloor } from '../src/domain/id.ts'
import { moveClock, newClockOffset } from '../src/store/shared/clock.ts'
import type { Store } from '../src/store/store.ts'
import { runSql } from '../test/support/postgres.ts'
import { type Bed, type Engine, useStore } from './processes.ts'

export const records = Number(process.env.POSTERN_BENCH_EMAILS ?? 1_000_000)

// Two of a hundred records failed, and one expired. One app sent ten emails in all.
const spread = {
  rare: 10,
  columns: `email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at, expires_at,
    finished_at, recipient, trail, traceparent`,
  trail:
    '[{"at":1760000000000,"outcome":"delivered","relay":"smtp.example.com:587","reply":{"code":250,"enhanced":"2.0.0","text":"250 2.0.0 Ok: queued"}}]',
}

/** By SQL: through the queue it would take an hour. The partitions of PostgreSQL are created day by day. */
export async function fillHistory(
  engine: Engine,
  bed: Bed,
  { days = 20, unmaintained = 0 }: { readonly days?: number; readonly unmaintained?: number } = {},
): Promise<void> {
  await useStoreAgo(bed, days, async (store, advance) => {
    for (let passed = 0; passed < days - unmaintained; passed++, advance(dayMs)) await store.maintain()
  })
  const places = await useStore(bed, async (store) => {
    const apps = await store.listApps()
    const keys = await Promise.all(apps.map(({ id }) => store.listKeys(id)))
    return apps.map(({ id }, index) => ({ app: id, key: keys[index]?.[0]?.id ?? '' }))
  })
  const [quiet, ...busy] = places
  if (quiet === undefined) throw new Error('the bed has no apps')
  const app = { busy: busy.map((place) => place.app), quiet: quiet.app }
  const key = { busy: busy.map((place) => place.key), quiet: quiet.key }
  const url = bed.env.POSTERN_DATABASE_URL ?? ''
  const endsAt = Date.now() - 60_000
  const timeOf = (n: number) => endsAt - Math.floor(((records - n) * days * dayMs) / records)
  const toRow = (n: number) => rowOf(n, timeOf(n), { app, key })
  if (engine === 'SQLite') fillSqlite(url.slice('sqlite:'.length), toRow)
  else await fillPostgres(url, toRow)
}

/** Opens the store with a clock that is behind. */
export async function useStoreAgo(
  bed: Bed,
  days: number,
  work: (store: Store, advance: (byMs: number) => void) => Promise<void>,
): Promise<void> {
  const clock = newClockOffset()
  moveClock(clock, -days * dayMs)
  await useStore(bed, (store) => work(store, (byMs) => moveClock(clock, byMs)), clock)
}

type Names = { readonly busy: readonly string[]; readonly quiet: string }
type HistoryRow = ReturnType<typeof rowOf>

function fillSqlite(path: string, toRow: (n: number) => HistoryRow): void {
  const database = new DatabaseSync(path)
  database.exec('pragma busy_timeout = 10000')
  const insert = database.prepare(
    `insert into history (${spread.columns}) values (?, ?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, null)`,
  )
  database.exec('begin')
  for (let n = 0; n < records; n++) {
    const { id, appId, keyId, type, state, reason, at, recipient } = toRow(n)
    insert.run(id, appId, keyId, type, state, reason, at, at + 900_000, at + 300, recipient, spread.trail)
  }
  database.exec('commit; analyze')
  database.close()
}

const types = ['magic_link', 'email_verification', 'password_reset', 'organisation_invite'] as const

function rowOf(n: number, at: number, { app, key }: { readonly app: Names; readonly key: Names }) {
  const isQuiet = n % Math.floor(records / spread.rare) === 0
  const place = n % app.busy.length
  const state = n % 50 === 0 ? 'failed' : n % 101 === 0 ? 'expired' : 'delivered'
  return {
    id: `${idFloor('em', at)}${n.toString(32).padStart(16, '0')}`,
    appId: isQuiet ? app.quiet : (app.busy[place] ?? ''),
    keyId: isQuiet ? key.quiet : (key.busy[place] ?? ''),
    type: types[n % 3] ?? types[0],
    state,
    reason: state === 'failed' ? 'refused_by_relay' : null,
    at,
    recipient: `recipient-${n % 200_000}-${'x'.repeat(24)}`,
  }
}

async function fillPostgres(url: string, toRow: (n: number) => HistoryRow): Promise<void> {
  const step = 50_000
  for (let from = 0; from < records; from += step) {
    const rows = Array.from({ length: Math.min(step, records - from) }, (_, index) => toRow(from + index))
    const text = `insert into postern.history (${spread.columns})
      select id, "appId", "keyId", type, state, reason, 1, 0, at, at + 900000, at + 300, recipient,
        '${spread.trail}', null
      from jsonb_to_recordset($json$${JSON.stringify(rows)}$json$) as r(id text, "appId" text, "keyId" text,
        type text, state text, reason text, at bigint, recipient text)`
    await runSql(url, text)
  }
  await runSql(url, 'analyze postern.history')
  await runSql(url, 'vacuum postern.history')
}
