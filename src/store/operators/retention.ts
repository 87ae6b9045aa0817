/**
 * Retention: deletes records when their time is over, and those of deleted apps. Each script makes one step,
 * so that no transaction is long however much somebody added, and returns whether there may be more.
 */
import { activityDays, appMinutesKept, auditDays, keepDays, stepMax } from '../../domain/bounds.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import { type AppId, idFloor } from '../../domain/id.ts'
import { lock, type Script, type ScriptContext } from './script.ts'
import { giveUpWebhooks } from './webhooks.ts'

type Step = {
  readonly table: string
  readonly key: string
  /** The oldest go first; by `key` unless it is set. There is an index for this order. */
  readonly order?: string
  /** The condition on a row, with `floor` as `$1`. */
  readonly isOld: string
  readonly floor: string | number
}

/** Returns how many rows were deleted: `stepMax` if there may be more. */
function* deleteStep(
  context: ScriptContext,
  { table, key, order = key, isOld, floor }: Step,
): Script<number> {
  const name = context.prefix + table
  const rows = yield {
    text: `delete from ${name} where (${key}) in (
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

export function* deleteOldHistory(context: ScriptContext): Script<boolean> {
  const floor = idFloor('em', context.nowMs - keepDays * dayMs)
  const step = { table: 'history', key: 'email_id', isOld: 'email_id < $1', floor }
  return (yield* deleteStep(context, step)) === stepMax
}

export function* deleteOldActivity(context: ScriptContext): Script<boolean> {
  const minute = Math.floor(context.nowMs / minuteMs)
  const table = { table: 'activity', key: 'app_id, span, minute, event', order: 'minute' }
  return yield* deleteSteps(context, [
    { ...table, isOld: "span = 1 and app_id <> '' and minute < $1", floor: minute - appMinutesKept },
    { ...table, isOld: 'minute < $1', floor: minute - (activityDays * dayMs) / minuteMs },
  ])
}

/** Keys are kept as long as records name them. */
export function* deleteOldRecords(context: ScriptContext): Script<boolean> {
  const { dialect, nowMs } = context
  const keptSince = nowMs - keepDays * dayMs
  const isGivenUp = yield* giveUpWebhooks(context)
  const { column } = dialect.usageSlot
  const isDeleted = yield* deleteSteps(context, [
    {
      ...{ table: 'usage_day', key: `${column}app_id, day, event`, order: 'day' },
      ...{ isOld: 'day < $1', floor: Math.floor(keptSince / dayMs) },
    },
    { table: 'refusal', key: 'request_id', isOld: 'request_id < $1', floor: idFloor('req', keptSince) },
    {
      ...{ table: 'audit', key: 'audit_id', isOld: 'audit_id < $1' },
      floor: idFloor('au', nowMs - auditDays * dayMs),
    },
    { table: 'session', key: 'session_id', order: 'expires_at', isOld: 'expires_at < $1', floor: nowMs },
    { table: 'sign_in_code', key: 'code_hash', order: 'expires_at', isOld: 'expires_at < $1', floor: nowMs },
    {
      ...{ table: 'strike_count', key: 'app_id, destination', order: 'since' },
      ...{ isOld: 'since < $1', floor: nowMs - dayMs },
    },
    {
      table: 'audit_day',
      key: 'owner',
      order: 'day',
      isOld: 'day < $1',
      floor: Math.floor(nowMs / dayMs) - 1,
    },
    {
      ...{ table: 'webhook_message', key: 'message_id', isOld: 'message_id < $1' },
      floor: idFloor('wh', keptSince),
    },
    {
      ...{ table: 'suppression', key: 'suppression_id', order: 'forget_at' },
      ...{ isOld: 'forget_at < $1', floor: nowMs },
    },
    {
      ...{ table: 'delivery_key', key: 'key_id', order: 'coalesce(revoked_at, expires_at)' },
      ...{ isOld: 'coalesce(revoked_at, expires_at) < $1', floor: keptSince },
    },
  ])
  return isDeleted || isGivenUp
}

/** Tables of which an app may have much, by their keys. */
const tablesOfApps = { suppression: 'suppression_id', webhook_message: 'message_id' } as const

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
