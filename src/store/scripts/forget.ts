/** Deletes what an address has left behind, by the name of the recipient, in steps. */
import { stepMax } from '../../domain/bounds.ts'
import { deleteStep } from './retention.ts'
import type { Script, ScriptContext } from './script.ts'

/** Deletes records of finished emails. Returns how many: `stepMax` if there may be more. */
const deleteRecords = (context: ScriptContext, recipient: string): Script<number> =>
  deleteStep(context, { table: 'history', key: 'email_id', isOld: 'recipient = $1', floor: recipient })

/**
 * Clears the recipient of refused requests, which have no index by it: a step reads `stepMax` after this id.
 * `next` is where to go on, null at the end.
 */
function* clearRefusedRecipient(
  { prefix }: ScriptContext,
  recipient: string,
  after: string | null,
): Script<{ readonly cleared: number; readonly next: string | null }> {
  const [last] = yield {
    text: `select request_id from ${prefix}refusal where request_id > $1 order by request_id limit 1 offset ${stepMax - 1}`,
    values: [after ?? ''],
  }
  const next = (last?.request_id ?? null) as string | null
  const cleared = yield {
    text: `update ${prefix}refusal set recipient = null
      where request_id > $1 and recipient = $2 ${next === null ? '' : 'and request_id <= $3'} returning 1`,
    values: [after ?? '', recipient, ...(next === null ? [] : [next])],
  }
  return { cleared: cleared.length, next }
}

export const forgetChanges = { deleteRecords, clearRefusedRecipient }
