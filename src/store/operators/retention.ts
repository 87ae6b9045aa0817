/**
 * Retention: deletes history, counts, refusals, audit entries and ended keys when their time is over. Each
 * script deletes all that is old, or one step of it.
 */
import { activityDays, appMinutesKept, auditDays, keepDays, stepMax } from '../../domain/bounds.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import { idFloor } from '../../domain/id.ts'
import { lock, type Script, type ScriptContext } from './script.ts'
import { giveUpWebhooks } from './webhooks.ts'

/** One step. Returns whether there may be more. */
export function* deleteOldHistory(context: ScriptContext): Script<boolean> {
  const floor = idFloor('em', context.nowMs - keepDays * dayMs)
  return yield* deleteStep(context, { table: 'history', key: 'email_id', isOld: 'email_id < $1', floor })
}

/** One step for the minutes of apps, and one for all else. Returns whether there may be more. */
export function* deleteOldActivity(context: ScriptContext): Script<boolean> {
  const minute = Math.floor(context.nowMs / minuteMs)
  const table = { table: 'activity', key: 'app_id, span, minute, event', order: 'minute' }
  const isRecentFull = yield* deleteStep(context, {
    ...table,
    isOld: "span = 1 and app_id <> '' and minute < $1",
    floor: minute - appMinutesKept,
  })
  const isOldFull = yield* deleteStep(context, {
    ...table,
    isOld: 'minute < $1',
    floor: minute - (activityDays * dayMs) / minuteMs,
  })
  return isOldFull || isRecentFull
}

type Step = {
  readonly table: string
  readonly key: string
  /** The oldest go first; by `key` unless it is set. */
  readonly order?: string
  /** The condition on a row, with `floor` as `$1`. */
  readonly isOld: string
  readonly floor: string | number
}

/** Returns whether the step was full. */
function* deleteStep(
  context: ScriptContext,
  { table, key, order = key, isOld, floor }: Step,
): Script<boolean> {
  const name = context.prefix + table
  const rows = yield {
    text: `delete from ${name} where (${key}) in (
      select ${key} from ${name} where ${isOld} order by ${order} limit ${stepMax}
      ${lock(context, 'for update skip locked')}) returning 1`,
    values: [floor],
  }
  return rows.length === stepMax
}

/**
 * All usage counts, refusals, audit entries and ended keys that are old, of which there is little at any
 * time, and a step of the suppressions and of the webhooks. Keys are kept as long as records name them.
 * Returns whether a key was deleted.
 */
export function* deleteOldRecords(context: ScriptContext): Script<boolean> {
  const { nowMs, prefix } = context
  const floor = nowMs - keepDays * dayMs
  yield { text: `delete from ${prefix}usage_day where day < $1`, values: [Math.floor(floor / dayMs)] }
  yield { text: `delete from ${prefix}refusal where request_id < $1`, values: [idFloor('req', floor)] }
  yield {
    text: `delete from ${prefix}audit where audit_id < $1`,
    values: [idFloor('au', nowMs - auditDays * dayMs)],
  }
  yield* giveUpWebhooks(context)
  // There may be many: a step each time.
  yield* deleteStep(context, {
    ...{ table: 'webhook_message', key: 'message_id' },
    ...{ isOld: 'message_id < $1', floor: idFloor('wh', floor) },
  })
  yield* deleteStep(context, {
    ...{ table: 'suppression', key: 'suppression_id', order: 'forget_at' },
    ...{ isOld: 'forget_at < $1', floor: nowMs },
  })
  const keys = yield {
    text: `delete from ${prefix}delivery_key where revoked_at < $1 or expires_at < $1 returning 1`,
    values: [floor],
  }
  return keys.length > 0
}
