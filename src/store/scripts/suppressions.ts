/** Suppressions of recipients: their rows, and the changes and lists of operators. */
import { stepMax, suppressionsMax } from '../../domain/bounds.ts'
import type { SuppressionReason } from '../../domain/delivery/states.ts'
import { type Destination, type SuppressionTerms, setTerms } from '../../domain/delivery/suppression.ts'
import { type AppId, type EmailId, newId, type SuppressionId } from '../../domain/id.ts'
import type { Action, Actor } from '../../domain/operator/audit.ts'
import type { ListPage } from '../operator-store.ts'
import type { ReportStore, SuppressionQuery, SuppressionRecord } from '../report-store.ts'
import type { Row } from '../shared/rows.ts'
import { lockApp } from './apps.ts'
import { recordAction } from './audit.ts'
import { cutPage, type Filter, oneMore, present, readStep, type Scan, toCondition } from './list-pages.ts'
import { readAll, readOne, type Script, type ScriptContext, type Statement } from './script.ts'

/** The `app_id` of a suppression for all apps. */
export const allApps = ''

export type Recipient = {
  readonly app: AppId | null
  readonly recipient: string
  readonly destination: Destination
}

/**
 * The row of a recipient. One that is made now has no strikes, and terms that are forgotten already. In one
 * statement: others may remove the row at any time. Not every report names the address, so a destination that
 * is known later counts.
 */
export function* lockSuppression(
  { nowMs, prefix }: ScriptContext,
  { app, recipient, destination }: Recipient,
): Script<SuppressionRecord> {
  const statement = {
    text: `insert into ${prefix}suppression as known (suppression_id, app_id, recipient, reason, strikes, at, until,
        invitations_until, forget_at, bounced_at, destination)
      values ($3, $1, $2, 'no_mailbox', 0, $4, 0, 0, 0, 0, $5) on conflict (app_id, recipient) do update
        set destination = case when known.destination = 'other' then excluded.destination else known.destination end
      returning *`,
    values: [app ?? allApps, recipient, newId('sp', nowMs), nowMs, destination],
  }
  const known = yield* readOne(statement, toRecord)
  if (known === null) throw new Error('a suppression was neither made nor found')
  return known
}

type Written = SuppressionTerms & Pick<SuppressionRecord, 'bouncedAt' | 'email' | 'reply'>

export function* writeSuppression(
  { nowMs, prefix }: ScriptContext,
  { app, id }: Pick<SuppressionRecord, 'app' | 'id'>,
  { bouncedAt, email, forgetAt, invitationsUntil, reason, reply, strikes, until }: Written,
): Script<SuppressionRecord> {
  const statement: Statement = {
    text: `update ${prefix}suppression set reason = $2, strikes = $3, at = $4, until = $5, invitations_until = $6,
        forget_at = $7, email_id = $8, reply = $9, bounced_at = $10
      where app_id = $11 and suppression_id = $1 returning *`,
    values: [
      ...[id, reason, strikes, nowMs, until, invitationsUntil, forgetAt, email, reply, bouncedAt],
      app ?? allApps,
    ],
  }
  const written = yield* readOne(statement, toRecord)
  if (written === null) throw new Error('a suppression was removed while it was locked')
  return written
}

function* setSuppression(
  context: ScriptContext,
  { app, recipient, destination, until }: Parameters<ReportStore['setSuppression']>[0],
  actor: Actor,
): Script<SuppressionRecord | 'too_many' | null> {
  if (app !== null && (yield* lockApp(context, app)) === null) return null
  if (app !== null && (yield* hasTooMany(context, app))) return 'too_many'
  const known = yield* lockSuppression(context, { app, recipient, destination })
  const terms = setTerms(known, until, context.nowMs)
  const { bouncedAt } = known
  const set = yield* writeSuppression(context, known, { ...terms, bouncedAt, email: null, reply: null })
  yield* recordAction(context, suppressionAction('suppression.add', set), actor)
  return set
}

/** Those of bounces and complaints do not count: as many emails were sent for them. */
function* hasTooMany({ prefix }: ScriptContext, app: AppId): Script<boolean> {
  const text = `select 1 from ${prefix}suppression where app_id = $1 and reason = 'operator' limit 1 offset ${suppressionsMax - 1}`
  return (yield { text, values: [app] }).length > 0
}

function* removeSuppression(context: ScriptContext, id: SuppressionId, actor: Actor): Script<SuppressionRecord | null> {
  const [removed = null] = yield* deleteSuppressions(context, { column: 'suppression_id', value: id }, actor)
  return removed
}

/** Deletes those of every app, one at most each, also ended ones, whose bounces would count. */
function* removeSuppressionsOf(context: ScriptContext, recipient: string, actor: Actor): Script<number> {
  return (yield* deleteSuppressions(context, { column: 'recipient', value: recipient }, actor)).length
}

function* deleteSuppressions(
  context: ScriptContext,
  { column, value }: { readonly column: 'suppression_id' | 'recipient'; readonly value: string },
  actor: Actor,
): Script<SuppressionRecord[]> {
  const text = `delete from ${context.prefix}suppression where ${column} = $1 returning *`
  const removed = yield* readAll({ text, values: [value] }, toRecord)
  for (const record of removed) yield* recordAction(context, suppressionAction('suppression.remove', record), actor)
  return removed
}

const suppressionAction = (
  action: 'suppression.add' | 'suppression.remove',
  { app, id, reason, until }: SuppressionRecord,
): Action => {
  const facts = { reason, until: new Date(until).toISOString() }
  const isAdded = action === 'suppression.add'
  return { action, app, target: id, before: isAdded ? null : facts, after: isAdded ? facts : null }
}

function* clearSuppressions(
  context: ScriptContext,
  query: SuppressionQuery,
  { actor, after }: Parameters<ReportStore['clearSuppressions']>[1],
): Script<{ readonly removed: number; readonly next: SuppressionId | null }> {
  const { prefix } = context
  const { apps, destination, reason, since, until } = query
  const [app] = apps?.length === 1 ? apps : []
  const values: (string | number)[] = [after ?? '', ...(app === undefined ? [] : [app])]
  const place = app === undefined ? 'suppression_id > $1' : 'app_id = $2 and suppression_id > $1'
  const ids = `select suppression_id from ${prefix}suppression where ${place} order by suppression_id`
  const [last] = yield { text: `${ids} limit 1 offset ${stepMax - 1}`, values: [...values] }
  const end = (last?.suppression_id ?? null) as SuppressionId | null
  const bind = (value: string | number) => `$${values.push(value)}`
  const conditions = toFilters(query).map((filter) => toCondition(filter, bind))
  if (end !== null) conditions.push(`suppression_id <= ${bind(end)}`)
  const removed = yield {
    text: `delete from ${prefix}suppression where ${[place, ...conditions].join(' and ')} returning 1`,
    values,
  }
  if (removed.length > 0) {
    const facts = {
      removed: removed.length,
      ...(reason && { reason }),
      ...(destination && { destination }),
      ...(since !== undefined && { from: new Date(since).toISOString() }),
      ...(until !== undefined && { to: new Date(until).toISOString() }),
    }
    const action: Action = {
      action: 'suppression.clear',
      app: app ?? null,
      target: 'suppressions',
      before: null,
      after: facts,
    }
    yield* recordAction(context, action, actor)
  }
  return { removed: removed.length, next: end }
}

const toFilters = ({ allApps: withAll, apps, destination, reason, since, until }: SuppressionQuery): Filter[] => [
  ...present({ app_id: apps ?? undefined, destination, reason }),
  ...present({ app_id: withAll === false ? { above: allApps } : undefined }),
  ...present({ at: since === undefined ? undefined : { above: since - 1 } }),
  ...present({ at: until === undefined ? undefined : { below: until } }),
]

function* findSuppression({ prefix }: ScriptContext, id: SuppressionId): Script<SuppressionRecord | null> {
  const text = `select * from ${prefix}suppression where suppression_id = $1`
  return yield* readOne({ text, values: [id] }, toRecord)
}

const foundMax = 100

function* findSuppressions(
  { dialect, nowMs, prefix }: ScriptContext,
  recipient: string,
  apps?: readonly (AppId | null)[],
): Script<SuppressionRecord[]> {
  const ids = JSON.stringify(apps?.map((app) => app ?? allApps) ?? [])
  const ofApps = apps === undefined ? '' : `and app_id ${dialect.isIn(dialect.elements('$3'))}`
  const statement: Statement = {
    text: `select * from ${prefix}suppression where recipient = $1 and invitations_until > $2 ${ofApps}
      order by suppression_id desc limit ${foundMax}`,
    values: [recipient, nowMs, ...(apps === undefined ? [] : [ids])],
  }
  return yield* readAll(statement, toRecord)
}

function* listSuppressions(
  { nowMs, prefix }: ScriptContext,
  { before, limit, ...query }: Parameters<ReportStore['listSuppressions']>[0],
): Script<ListPage<SuppressionRecord, SuppressionId>> {
  // Those of one app have an index; several apps are picked from all.
  const [app] = query.apps?.length === 1 && query.allApps !== true ? query.apps : []
  const scan: Scan = {
    table: `${prefix}suppression`,
    id: 'suppression_id',
    indexed: app === undefined ? [] : [['app_id', app]],
    filters: [...toFilters(query), ['invitations_until', { above: nowMs }]],
    before: before ?? null,
    floor: null,
    limit: oneMore(limit),
  }
  const { rows, end } = yield* readStep(scan)
  return cutPage(rows.map(toRecord), [end], limit)
}

const toRecord = (row: Row): SuppressionRecord => ({
  id: row.suppression_id as SuppressionId,
  app: row.app_id === allApps ? null : (row.app_id as AppId),
  reason: row.reason as SuppressionReason,
  strikes: row.strikes as number,
  at: row.at as number,
  until: row.until as number,
  invitationsUntil: row.invitations_until as number,
  forgetAt: row.forget_at as number,
  bouncedAt: row.bounced_at as number,
  destination: row.destination as Destination,
  email: row.email_id as EmailId | null,
  reply: row.reply as string | null,
})

export const suppressionChanges = { setSuppression, removeSuppression, removeSuppressionsOf, clearSuppressions }
export const suppressionReads = { findSuppression, findSuppressions, listSuppressions }
