/** Emails as operators see them: a record by its id, and lists as steps through tables with their indexes. */

import { isTestSide, realSide } from '../../domain/app/test-side.ts'
import { type EmailState, type EndReason, type LiveState, liveStates } from '../../domain/delivery/states.ts'
import type { AppId, EmailId, KeyId } from '../../domain/id.ts'
import type { Action } from '../../domain/operator/audit.ts'
import type { EmailQuery, EmailRecord, ListPage } from '../operator-store.ts'
import { queueParts } from '../shared/queue-parts.ts'
import type { Row } from '../shared/rows.ts'
import {
  cutPage,
  type Filter,
  listSides,
  oneMore,
  present,
  readRange,
  readStep,
  type Scan,
  type Step,
} from './list-pages.ts'
import { readOne, type Script, type ScriptContext } from './script.ts'

function* findEmail({ prefix }: ScriptContext, id: EmailId): Script<EmailRecord | null> {
  const find = (table: string) => ({
    text: `select * from ${prefix}${table} where email_id = $1`,
    values: [id],
  })
  const live = yield* readOne(find('queue'), toLiveRecord)
  return live ?? (yield* readOne(find('history'), toFinishedRecord))
}

/** All statements must see one state of the database: an email moves from one table to the other. */
function* listEmails({ prefix }: ScriptContext, query: EmailQuery): Script<ListPage<EmailRecord, EmailId>> {
  const scans = emailScans(query, prefix)
  const live: Step[] = []
  for (const scan of scans.queue) live.push(yield* readStep(scan))
  const finished: Step[] = []
  for (const scan of scans.history) finished.push(yield* readStep(scan))
  const records = [
    ...live.flatMap(({ rows }) => rows.map(toLiveRecord)),
    ...finished.flatMap(({ rows }) => rows.map(toFinishedRecord)),
  ]
  const newestFirst = records
    .filter((record) => mentions(record, query.reply))
    .toSorted((a, b) => (a.id < b.id ? 1 : -1))
  return cutPage(
    newestFirst,
    [...live, ...finished].map(({ end }) => end),
    query.limit,
  )
}

/** The trail as it is stored also holds the names of its fields. */
function mentions({ trail }: EmailRecord, reply: string | undefined): boolean {
  const part = reply?.toLowerCase() ?? ''
  return (
    trail.some(({ relay = '', reply: said }) => `${relay}\n${said?.text ?? ''}`.toLowerCase().includes(part)) ||
    part === ''
  )
}

const isLive = (state: EmailState): state is LiveState => liveStates.some((name) => name === state)

/** `queue` holds the live states, `history` the final ones. */
type EmailScans = { readonly queue: readonly Scan[]; readonly history: readonly Scan[] }

/** The scans that together find every match. */
function emailScans(query: EmailQuery, prefix: string): EmailScans {
  const sides = listSides({ ...query, apps: query.app === undefined ? null : [query.app] })
  const scans = (Array.isArray(sides) ? sides : [sides]).map((side) => scansOf(query, side, prefix))
  return { queue: scans.flatMap(({ queue }) => queue), history: scans.flatMap(({ history }) => history) }
}

function scansOf(query: EmailQuery, side: Filter[1] | undefined, prefix: string): EmailScans {
  const { app, key, type, state, recipient, reply, since, until, before, limit } = query
  const common = {
    id: 'email_id',
    ...readRange('em', { since, until, before }),
    limit: oneMore(limit),
  }
  const trail = reply === undefined ? undefined : { contains: JSON.stringify(reply).slice(1, -1) }
  const all = present({ app_id: side, key_id: key, type, state, recipient, 'cast(trail as text)': trail })
  const table = `${prefix}queue`
  const queue =
    app === undefined
      ? [{ ...common, table, indexed: [], filters: all }]
      : appParts(state).map((part) => ({ ...common, table, ...part, ...splitLive(all) }))
  const history = [{ ...common, table: `${prefix}history`, ...splitFinished(query, all) }]
  if (state === undefined) return { queue, history }
  return isLive(state) ? { queue, history: [] } : { queue: [], history }
}

type Part = Pick<Scan, 'condition' | 'isSmall'>

const partsByState: Readonly<Record<LiveState, readonly Part[]>> = {
  queued: [{ condition: queueParts.ready }, { condition: queueParts.suspect }],
  deferred: [{ condition: queueParts.deferred }],
  sending: [{ condition: queueParts.sending, isSmall: true }],
}

/**
 * The queue of one app is read part by part: the two large parts have an index by app, so a list reads none
 * of the mail of others, however much of it waits.
 */
const appParts = (state: EmailState | undefined): readonly Part[] =>
  state === undefined ? Object.values(partsByState).flat() : isLive(state) ? partsByState[state] : []

const splitLive = (all: readonly Filter[]): Pick<Scan, 'indexed' | 'filters'> => ({
  indexed: all.filter(([column]) => column === 'app_id'),
  filters: all.filter(([column]) => column !== 'app_id' && column !== 'state'),
})

/** The filters of finished emails: those that an index serves, and the others. */
function splitFinished(
  { app, state, recipient }: EmailQuery,
  all: readonly Filter[],
): Pick<Scan, 'indexed' | 'filters' | 'condition'> {
  const isTrouble = state !== undefined && state !== 'delivered'
  const byIndex =
    recipient !== undefined
      ? ['recipient']
      : [...(app === undefined ? [] : ['app_id']), ...(isTrouble ? ['state'] : [])]
  const indexed = all.filter(([column]) => byIndex.includes(column))
  const filters = all.filter(([column]) => !byIndex.includes(column))
  // Lets the engine use the partial indexes of what was not delivered.
  return { indexed, filters, ...(isTrouble && { condition: "state <> 'delivered'" }) }
}

const toRecord = (row: Row) => ({
  id: row.email_id as EmailId,
  app: realSide(row.app_id as AppId),
  isTest: isTestSide(row.app_id as AppId),
  key: row.key_id as KeyId | null,
  type: row.type as EmailRecord['type'],
  recipient: row.recipient as string,
  state: row.state as EmailState,
  attempts: row.attempts as number,
  lostLeases: row.lost_leases as number,
  acceptedAt: row.accepted_at as number,
  expiresAt: row.expires_at as number,
  trail: JSON.parse(row.trail as string),
})

/** From a row of `queue`. */
function toLiveRecord(row: Row): EmailRecord {
  const record = toRecord(row)
  const nextAttemptAt = record.state === 'deferred' ? (row.due_at as number) : null
  return { ...record, nextAttemptAt, finishedAt: null, reason: null }
}

/** From a row of `history`. */
const toFinishedRecord = (row: Row): EmailRecord => ({
  ...toRecord(row),
  nextAttemptAt: null,
  finishedAt: row.finished_at as number,
  reason: row.reason as EndReason | null,
})

/** The audit entry of an operator's change of one email. */
export const emailChanged = (
  action: 'email.retry' | 'email.cancel',
  email: { readonly id: EmailId; readonly app: AppId; readonly state: EmailState },
): Action => ({
  action,
  app: realSide(email.app),
  target: email.id,
  before: { state: email.state },
  after: { state: action === 'email.retry' ? 'queued' : 'cancelled' },
})

/** The audit entry of a retry of all deferred mail. @param apps null: of all apps */
export const allRetried = (apps: readonly AppId[] | null): Action => ({
  action: 'email.retry_all',
  app: apps?.length === 1 ? (apps[0] ?? null) : null,
  target: apps === null ? 'all' : apps.join(' '),
  before: null,
  after: null,
})

export const emailReads = { findEmail }
/** Reads whose statements must all see one state of the database. */
export const emailSnapshots = { listEmails }
