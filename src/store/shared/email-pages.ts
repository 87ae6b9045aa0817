/** The lists of emails and of the audit, as steps through tables with their indexes. */
import { type EmailState, liveStates } from '../../domain/delivery/states.ts'
import { idFloor } from '../../domain/id.ts'
import type { AuditQuery, EmailQuery, EmailRecord, Page } from '../operator-store.ts'
import { scanMax } from './bounds.ts'
import { cutPage, type Filter, type Scan, type Step } from './pages.ts'
import { toFinishedRecord, toLiveRecord } from './records.ts'

const isLive = (state: EmailState): boolean => liveStates.some((name) => name === state)

const present = (columns: Readonly<Record<string, string | undefined>>): Filter[] =>
  Object.entries(columns).filter((filter): filter is [string, string] => filter[1] !== undefined)

/** One row more than a page tells whether there are more; no step reads more than `scanMax`. */
const oneMore = (limit: number): number => Math.min(limit + 1, scanMax)

type EmailScans = { readonly queue: Scan | null; readonly history: Scan | null }

/** `queue` holds the live states, `history` the final ones; null for a table without matches. */
export function emailScans(query: EmailQuery, schema = ''): EmailScans {
  const { app, key, type, state, recipient, since, before, limit } = query
  const common = {
    id: 'email_id',
    before: before ?? null,
    floor: since === undefined ? null : idFloor('em', since),
    limit: oneMore(limit),
  }
  const all = present({ app_id: app, key_id: key, type, state, recipient })
  const queue: Scan = { ...common, table: `${schema}queue`, indexed: [], filters: all }
  const history: Scan = { ...common, table: `${schema}history`, ...splitFinished(query, all) }
  if (state === undefined) return { queue, history }
  return isLive(state) ? { queue, history: null } : { queue: null, history }
}

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

/** An email that finished between the two steps is taken as finished. */
export function emailsPage(queue: Step, history: Step, limit: number): Page<EmailRecord, EmailRecord['id']> {
  const records = [...queue.rows.map(toLiveRecord), ...history.rows.map(toFinishedRecord)]
  const byId = new Map(records.map((record) => [record.id, record]))
  const newestFirst = [...byId.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1))
  return cutPage(newestFirst, [queue.end, history.end], limit)
}

export const noStep: Step = { rows: [], end: null }

export const auditScan = ({ app, action, actor, before, limit }: AuditQuery, schema = ''): Scan => ({
  table: `${schema}audit`,
  id: 'audit_id',
  before: before ?? null,
  floor: null,
  indexed: present({ app_id: app }),
  filters: present({ action, actor_name: actor }),
  limit: oneMore(limit),
})
