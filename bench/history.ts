/** Fills a database with finished emails (`POSTERN_BENCH_EMAILS`, 1,000,000 unless set), by SQL. */
import { DatabaseSync } from 'node:sqlite'
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

/** Fills `history` by SQL: through the queue it would take an hour. */
export async function fillHistory(engine: Engine, bed: Bed): Promise<void> {
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
  if (engine === 'SQLite') fillSqlite(url.slice('sqlite:'.length), app, key)
  else await fillPostgres(url, app, key)
}

type Names = { readonly busy: readonly string[]; readonly quiet: string }

/** An id that sorts by `n`, before the ids of now. */
const idOf = (n: number): string => `em_01000${n.toString(32).padStart(21, '0')}`

function fillSqlite(path: string, app: Names, key: Names): void {
  const database = new DatabaseSync(path)
  database.exec('pragma busy_timeout = 10000')
  const insert = database.prepare(
    `insert into history (${spread.columns}) values (?, ?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, null)`,
  )
  const begunAt = Date.now() - 86_400_000 * 20
  database.exec('begin')
  for (let n = 0; n < records; n++) {
    const { appId, keyId, type, state, reason, at, recipient } = rowOf(n, app, key, begunAt)
    insert.run(idOf(n), appId, keyId, type, state, reason, at, at + 900_000, at + 300, recipient, spread.trail)
  }
  database.exec('commit; analyze')
  database.close()
}

const types = ['magic_link', 'email_verification', 'password_reset', 'organisation_invite'] as const

function rowOf(n: number, app: Names, key: Names, begunAt: number) {
  const isQuiet = n % Math.floor(records / spread.rare) === 0
  const place = n % app.busy.length
  const state = n % 50 === 0 ? 'failed' : n % 101 === 0 ? 'expired' : 'delivered'
  return {
    appId: isQuiet ? app.quiet : (app.busy[place] ?? ''),
    keyId: isQuiet ? key.quiet : (key.busy[place] ?? ''),
    type: types[n % 3] ?? types[0],
    state,
    reason: state === 'failed' ? 'refused_by_relay' : null,
    at: begunAt + n,
    recipient: `recipient-${n % 200_000}-${'x'.repeat(24)}`,
  }
}

async function fillPostgres(url: string, app: Names, key: Names): Promise<void> {
  const step = 50_000
  const begunAt = Date.now() - 86_400_000 * 20
  for (let from = 0; from < records; from += step) {
    const rows = Array.from({ length: Math.min(step, records - from) }, (_, index) => {
      const n = from + index
      const { appId, keyId, type, state, reason, at, recipient } = rowOf(n, app, key, begunAt)
      return { email_id: idOf(n), app_id: appId, key_id: keyId, type, state, reason, at, recipient }
    })
    const text = `insert into postern.history (${spread.columns})
      select email_id, app_id, key_id, type, state, reason, 1, 0, at, at + 900000, at + 300, recipient,
        '${spread.trail}', null
      from jsonb_to_recordset($json$${JSON.stringify(rows)}$json$) as r(email_id text, app_id text, key_id text,
        type text, state text, reason text, at bigint, recipient text)`
    await runSql(url, text)
  }
  await runSql(url, 'analyze postern.history')
  await runSql(url, 'vacuum postern.history')
}
