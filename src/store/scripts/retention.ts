/**
 * Retention: deletes records when their time is over, and those of deleted apps. Each script makes one step,
 * so that no transaction is long however much somebody added, and returns whether there may be more.
 */
import {
  activityDays,
  appMinutesKept,
  auditDays,
  inboxMs,
  keepDays,
  stepMax,
  webhookDays,
} from '../../domain/bounds.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import { type AppId, type EmailId, idFloor } from '../../domain/id.ts'
import { lock, type Script, type ScriptContext } from './script.ts'

type Step = {
  readonly table: string
  readonly key: string
  /** The oldest go first; by `key` unless it is set. There is an index for this order. */
  readonly order?: string
  /** The condition on a row, with `floor` as `$1`; `order` is below it unless this is set. */
  readonly isOld?: string
  readonly floor: string | number
  /** Changes the rows instead of deleting them. */
  readonly set?: string
}

/** Returns how many rows were deleted or changed: `stepMax` if there may be more. */
export function* deleteStep(
  context: ScriptContext,
  { table, key, order = key, isOld = `${order} < $1`, floor, set }: Step,
): Script<number> {
  const name = context.prefix + table
  const rows = yield {
    text: `${set === undefined ? `delete from ${name}` : `update ${name} set ${set}`} where (${key}) in (
      select ${key} from ${name} where ${isOld} order by ${order} limit ${stepMax}
      ${lock(context, 'for update skip locked')}) returning 1`,
    values: [floor],
  }
  return rows.length
}

/** One step of each. */
function* deleteSteps(context: ScriptContext, steps: readonly Step[]): Script<boolean> {
  let isFull = false
  for (const step of steps) isFull = (yield* deleteStep(context, step)) === stepMax || isFull
  return isFull
}

/**
 * As a range of ids: a join would look into each partition of PostgreSQL.
 * @param beforeMs when emails were accepted whose records are old
 */
export function* deleteOldHistory(
  { nowMs, prefix }: ScriptContext,
  beforeMs = nowMs - keepDays * dayMs,
): Script<boolean> {
  const old = yield {
    text: `select email_id from ${prefix}history where email_id < $1 order by email_id limit ${stepMax}`,
    values: [idFloor('em', beforeMs)],
  }
  const last = old.at(-1)?.email_id as EmailId | undefined
  if (last === undefined) return false
  yield { text: `delete from ${prefix}history where email_id <= $1`, values: [last] }
  return old.length === stepMax
}

export function* deleteOldActivity(context: ScriptContext): Script<boolean> {
  const minute = Math.floor(context.nowMs / minuteMs)
  const table = { table: 'activity', key: 'app_id, span, minute, event', order: 'minute' }
  return yield* deleteSteps(context, [
    { ...table, isOld: "span = 1 and app_id <> '' and minute < $1", floor: minute - appMinutesKept },
    { ...table, floor: minute - (activityDays * dayMs) / minuteMs },
  ])
}

/** Keys are kept as long as records name them. */
export function* deleteOldRecords(context: ScriptContext): Script<boolean> {
  const { dialect, nowMs } = context
  const keptSince = nowMs - keepDays * dayMs
  const [today, firstDay] = [Math.floor(nowMs / dayMs), Math.floor(keptSince / dayMs)]
  const usageKey = `${dialect.usageSlot.column}app_id, day, event`
  const ended = 'coalesce(revoked_at, expires_at)'
  return yield* deleteSteps(context, [
    {
      // Those that wait are given up, and no recipient is kept for longer.
      ...{
        table: 'webhook_message',
        ...{ key: 'message_id, app_id', order: 'message_id' },
        isOld: '(due_at is not null or sealed is not null) and message_id < $1',
      },
      set: "due_at = null, sealed = null, result = coalesce(result, 'not tried')",
      floor: idFloor('wh', nowMs - webhookDays * dayMs),
    },
    { table: 'usage_day', key: usageKey, order: 'day', floor: firstDay },
    { table: 'refusal', key: 'request_id, app_id', order: 'request_id', floor: idFloor('req', keptSince) },
    { table: 'last_check', key: 'subject', order: 'at', floor: keptSince },
    { table: 'audit', key: 'audit_id', floor: idFloor('au', nowMs - auditDays * dayMs) },
    { table: 'inbox_email', key: 'seq', order: 'at', floor: nowMs - inboxMs },
    { table: 'session', key: 'session_id', order: 'expires_at', floor: nowMs },
    { table: 'sign_in_code', key: 'code_hash', order: 'expires_at', floor: nowMs },
    { table: 'strike_count', key: 'app_id, destination', order: 'since', floor: nowMs - dayMs },
    { table: 'audit_day', key: 'owner', order: 'day', floor: today - 1 },
    { table: 'webhook_message', key: 'message_id, app_id', order: 'message_id', floor: idFloor('wh', keptSince) },
    { table: 'suppression', key: 'recipient, app_id', order: 'forget_at', floor: nowMs },
    { table: 'delivery_key', key: 'key_id', order: ended, floor: keptSince },
  ])
}

/** Tables of which an app may have much, by their keys. */
const tablesOfApps = { suppression: 'suppression_id, app_id', webhook_message: 'message_id, app_id' } as const

/** Deleted apps whose records one step looks for. */
const appsMax = 32

/**
 * One step of the records of one deleted app. Its keys are gone already, and its mail is cancelled elsewhere.
 */
export function* deleteAppRecords(context: ScriptContext): Script<boolean> {
  const text = `select app_id from ${context.prefix}app where status <> 'active' and status = 'deleted'
    order by status_at limit ${appsMax}`
  for (const { app_id } of yield { text, values: [] })
    for (const [table, key] of Object.entries(tablesOfApps)) {
      const floor = app_id as AppId
      if ((yield* deleteStep(context, { table, key, isOld: 'app_id = $1', floor })) > 0) return true
    }
  return false
}

/** The condition of `cancelDeletedAppMail` to remove an app; `$1` is its id. */
export const hasNoRecords = (prefix: string): string =>
  Object.keys(tablesOfApps)
    .map((table) => `not exists (select 1 from ${prefix}${table} where app_id = $1)`)
    .join(' and ')
