/** The lists of emails and of the audit, as steps through tables with their indexes. */
import { type EmailState, type LiveState, liveStates } from '../../domain/delivery/states.ts'
import { idFloor } from '../../domain/id.ts'
import type { AuditQuery, EmailQuery, EmailRecord, Page } from '../operator-store.ts'
import { scanMax } from './bounds.ts'
import { cutPage, type Filter, type Scan, type Step } from './pages.ts'
import { queueParts } from './queue-parts.ts'
import { toFinishedRecord, toLiveRecord } from './records.ts'

const isLive = (state: EmailState): state is LiveState => liveStates.some((name) => name === state)

const present = (columns: Readonly<Record<string, string | undefined>>): Filter[] =>
  Object.entries(columns).filter((filter): filter is [string, string] => filter[1] !== undefined)

/** One row more than a page tells whether there are more; no step reads more than `scanMax`. */
const oneMore = (limit: number): number => Math.min(limit + 1, scanMax)

/** `queue` holds the live states, `history` the final ones. */
type EmailScans = { readonly queue: readonly Scan[]; readonly history: readonly Scan[] }

/** The scans that together find every match. */
export function emailScans(query: EmailQuery, schema = ''): EmailScans {
  const { app, key, type, state, recipient, since, before, limit } = query
  const common = {
    id: 'email_id',
    before: before ?? null,
    floor: since === undefined ? null : idFloor('em', since),
    limit: oneMore(limit),
  }
  const all = present({ app_id: app, key_id: key, type, state, recipient })
  const table = `${schema}queue`
  const queue =
    app === undefined
      ? [{ ...common, table, indexed: [], filters: all }]
      : appParts(state).map((part) => ({ ...common, table, ...part, ...splitLive(all) }))
  const history = [{ ...common, table: `${schema}history`, ...splitFinished(query, all) }]
  if (state === undefined) return { queue, history }
  return isLive(state) ? { queue, history: [] } : { queue: [], history }
}

type Part = Pick<Scan, 'condition' | 'isSmall'>

const partsOf: Readonly<Record<LiveState, readonly Part[]>> = {
  queued: [{ condition: queueParts.ready }, { condition: queueParts.suspect }],
  deferred: [{ condition: queueParts.deferred }],
  sending: [{ condition: queueParts.sending, isSmall: true }],
}

/**
 * The queue of one app is read part by part: the two large parts have an index by app, so a list reads none of the mail
 * of others, however much of it waits.
 */
const appParts = (state: EmailState | undefined): readonly Part[] =>
  state === undefined ? Object.values(partsOf).flat() : isLive(state) ? partsOf[state] : []

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

/** A page of what the steps of `emailScans` read, in one snapshot. */
export function emailsPage(
  { queue, history }: { readonly queue: readonly Step[]; readonly history: readonly Step[] },
  limit: number,
): Page<EmailRecord, EmailRecord['id']> {
  const live = queue.flatMap(({ rows }) => rows.map(toLiveRecord))
  const finished = history.flatMap(({ rows }) => rows.map(toFinishedRecord))
  const newestFirst = [...live, ...finished].toSorted((a, b) => (a.id < b.id ? 1 : -1))
  const ends = [...queue, ...history].map(({ end }) => end)
  return cutPage(newestFirst, ends, limit)
}

export const auditScan = ({ app, action, actor, before, limit }: AuditQuery, schema = ''): Scan => ({
  table: `${schema}audit`,
  id: 'audit_id',
  before: before ?? null,
  floor: null,
  indexed: present({ app_id: app }),
  filters: present({ action, actor_name: actor }),
  limit: oneMore(limit),
})
