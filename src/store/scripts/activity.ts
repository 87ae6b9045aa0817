/**
 * Records that processes make of themselves: counts behind charts, refused requests, and which processes run.
 */

import { realSide } from '../../domain/app/test-side.ts'
import { dayMs } from '../../domain/duration.ts'
import type { AppId, KeyId, NodeId } from '../../domain/id.ts'
import type { ActivityRow } from '../../domain/operator/activity.ts'
import { type NodeRecord, nodeSilentMs } from '../../domain/operator/node.ts'
import { type RefusedRequest, refusalsMax } from '../../domain/request/refused-request.ts'
import type { ActivityQuery, AppActivityRow, CheckSubject, KeptCheck, RefusalQuery } from '../activity-store.ts'
import type { ListPage } from '../operator-store.ts'
import type { Row } from '../shared/rows.ts'
import { cutPage, listSides, oneMore, present, readRange, readStep, type Scan } from './list-pages.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

/**
 * The rows are written in one order, so that processes that write the same ones never wait for each other in
 * a circle.
 */
function* addActivity({ dialect, prefix }: ScriptContext, rows: readonly ActivityRow[]): Script<void> {
  const columns = {
    app_id: 'text',
    span: 'bigint',
    minute: 'bigint',
    event: 'text',
    count: 'bigint',
  } as const
  const objects = rows.map(({ app, ...row }) => ({ ...row, app_id: activityApp(app) }))
  yield {
    text: `insert into ${prefix}activity as known (app_id, span, minute, event, count)
      select app_id, span, minute, event, count from ${dialect.objects('$1', columns)} where true order by 1, 2, 3, 4
      on conflict (app_id, span, minute, event) do update set count = known.count + excluded.count`,
    values: [JSON.stringify(objects)],
  }
}

function* readActivity(
  { dialect, prefix }: ScriptContext,
  { apps, from, to, step }: ActivityQuery,
): Script<Omit<ActivityRow, 'app' | 'span'>[]> {
  const statement = {
    text: `select minute - minute % $1 as minute, event, cast(sum(count) as bigint) as count from ${prefix}activity
      where app_id ${dialect.isIn(dialect.elements('$2'))} and span = $5 and minute >= $3 and minute < $4
      group by 1, 2 order by 1, 2`,
    values: [step, JSON.stringify(apps ?? [activityApp(null)]), from, to, apps === null ? 1 : step],
  }
  return yield* readAll(statement, (row) => ({
    minute: row.minute as number,
    event: row.event as ActivityRow['event'],
    count: row.count as number,
  }))
}

/** The counts of every app, its minutes added up. */
function* readAppActivity({ prefix }: ScriptContext, from: number, to: number): Script<AppActivityRow[]> {
  const text = `select app_id, event, cast(sum(count) as bigint) as count, min(minute) as first, max(minute) as last from ${prefix}activity
    where span = 1 and app_id <> '' and minute >= $1 and minute < $2 group by 1, 2 order by 1, 2`
  return yield* readAll({ text, values: [from, to] }, (row) => ({
    app: row.app_id as AppId,
    event: row.event as ActivityRow['event'],
    count: row.count as number,
    first: row.first as number,
    last: row.last as number,
  }))
}

/** The `app_id` of an activity row: empty for the service. */
const activityApp = (app: AppId | null): string => app ?? ''

const refusalColumns = {
  request_id: 'text',
  at: 'bigint',
  app_id: 'text',
  key_id: 'text',
  code: 'text',
  issues: 'json',
  origin: 'text',
  recipient: 'text',
} as const

function* addRefusals(context: ScriptContext, refusals: readonly RefusedRequest[]): Script<void> {
  const { dialect, prefix } = context
  const names = Object.keys(refusalColumns).join(', ')
  const objects = refusals.map(({ requestId, app, key, ...refusal }) => ({
    ...refusal,
    request_id: requestId,
    app_id: app,
    key_id: key,
  }))
  yield {
    text: `insert into ${prefix}refusal (${names})
      select ${names} from ${dialect.objects('$1', refusalColumns)} where true order by 1
      on conflict (request_id, app_id) do nothing`,
    values: [JSON.stringify(objects)],
  }
  const apps = [...new Set(refusals.map(({ app }) => app))].map((app) => ({ app_id: app }))
  // Rows that another process is deleting are left to it.
  // A flood of requests over a limit pushes out none of the others, which may be the trace of a stolen key.
  for (const isOfKind of [`like '%limit%'`, `not like '%limit%'`])
    yield {
      text: `delete from ${prefix}refusal where (request_id, app_id) in (
      select old.request_id, old.app_id from ${dialect.objects('$1', { app_id: 'text' })} join ${prefix}refusal old
        on old.app_id = objects.app_id and old.code ${isOfKind}
      where old.request_id <= (select request_id from ${prefix}refusal
        where app_id = objects.app_id and code ${isOfKind} order by request_id desc limit 1 offset $2)
      ${lock(context, 'for update of old skip locked')})`,
      values: [JSON.stringify(apps), refusalsMax],
    }
}

function* listRefusals({ prefix }: ScriptContext, query: RefusalQuery): Script<ListPage<RefusedRequest, string>> {
  const { before, code, key, limit, recipient, since, until } = query
  const sides = listSides(query)
  const only = Array.isArray(sides) && sides.length === 1 ? sides[0] : undefined
  const filters = present({ key_id: key, code, recipient, app_id: only === undefined ? sides : undefined })
  const scan: Scan = {
    ...{ table: `${prefix}refusal`, id: 'request_id', filters, limit: oneMore(limit) },
    ...readRange('req', { since, until, before }),
    indexed: only === undefined ? [] : [['app_id', only]],
  }
  const { rows, end } = yield* readStep(scan)
  const { items, next } = cutPage(
    rows.map((row) => ({ id: row.request_id as string, row })),
    [end],
    limit,
  )
  return { items: items.map(({ row }) => toRefusal(row)), next }
}

function* findRefusal({ prefix }: ScriptContext, requestId: string): Script<RefusedRequest | null> {
  const text = `select * from ${prefix}refusal where request_id = $1`
  return yield* readOne({ text, values: [requestId] }, toRefusal)
}

const toRefusal = (row: Row): RefusedRequest => ({
  requestId: row.request_id as string,
  at: row.at as number,
  app: realSide(row.app_id as AppId),
  key: row.key_id as KeyId,
  code: row.code as RefusedRequest['code'],
  issues: JSON.parse(row.issues as string),
  origin: row.origin as string | null,
  recipient: row.recipient as string | null,
})

function* keepCheck({ nowMs, prefix }: ScriptContext, subject: CheckSubject, result: unknown): Script<void> {
  yield {
    text: `insert into ${prefix}last_check (subject, at, result) values ($1, $2, $3)
      on conflict (subject) do update set at = excluded.at, result = excluded.result`,
    values: [subject, nowMs, JSON.stringify(result)],
  }
}

function* swapCheck(
  { nowMs, prefix }: ScriptContext,
  subject: CheckSubject,
  before: unknown,
  after: unknown,
): Script<boolean> {
  const rows =
    before === null
      ? yield {
          text: `insert into ${prefix}last_check (subject, at, result) values ($1, $2, $3)
            on conflict do nothing returning 1`,
          values: [subject, nowMs, JSON.stringify(after)],
        }
      : yield {
          text: `update ${prefix}last_check set at = $2, result = $3
            where subject = $1 and cast(result as text) = $4 returning 1`,
          values: [subject, nowMs, JSON.stringify(after), JSON.stringify(before)],
        }
  return rows.length > 0
}

function* findCheck({ prefix }: ScriptContext, subject: CheckSubject): Script<KeptCheck | null> {
  const text = `select at, cast(result as text) as result from ${prefix}last_check where subject = $1`
  return yield* readOne({ text, values: [subject] }, (row) => ({
    at: row.at as number,
    result: JSON.parse(row.result as string) as unknown,
  }))
}

function* noteNode(
  { nowMs, prefix }: ScriptContext,
  { id, faults, machine, version, roles, startedAt, relays }: Omit<NodeRecord, 'seenAt'>,
): Script<void> {
  yield {
    text: `delete from ${prefix}node
      where seen_at < $1 or (machine = $2 and cast(roles as text) = $3 and seen_at < $4)`,
    values: [nowMs - dayMs, machine, JSON.stringify(roles), Math.min(startedAt, nowMs - nodeSilentMs)],
  }
  yield {
    text: `insert into ${prefix}node (node_id, machine, version, roles, started_at, seen_at, relays, faults)
      values ($1, $2, $3, $4, $5, $6, $7, $8)
      on conflict (node_id) do update
        set seen_at = excluded.seen_at, relays = excluded.relays, faults = excluded.faults`,
    values: [
      ...[id, machine, version, JSON.stringify(roles), startedAt, nowMs, JSON.stringify(relays)],
      JSON.stringify(faults),
    ],
  }
}

function* removeNode({ prefix }: ScriptContext, id: NodeId): Script<void> {
  yield { text: `delete from ${prefix}node where node_id = $1`, values: [id] }
}

function* listNodes({ prefix }: ScriptContext): Script<NodeRecord[]> {
  return yield* readAll({ text: `select * from ${prefix}node order by node_id`, values: [] }, toNodeRecord)
}

/** A process of an earlier version tells less of its relays. */
const readRelays = (text: string): NodeRecord['relays'] =>
  (JSON.parse(text) as NodeRecord['relays']).map((relay) => ({
    ...relay,
    certificateExpiresAt: relay.certificateExpiresAt ?? null,
    tried: relay.tried ?? true,
  }))

const toNodeRecord = (row: Row): NodeRecord => ({
  id: row.node_id as NodeId,
  machine: row.machine as string,
  version: row.version as string,
  roles: JSON.parse(row.roles as string),
  startedAt: row.started_at as number,
  seenAt: row.seen_at as number,
  relays: readRelays(row.relays as string),
  faults: JSON.parse(row.faults as string),
})

export const activityChanges = { addRefusals }
export const activityNotes = { addActivity, keepCheck, swapCheck, noteNode, removeNode }
export const activityReads = { readActivity, readAppActivity, listRefusals, findRefusal, findCheck, listNodes }
