/** An operator's changes of single emails. */
import type { LiveState } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { stepMax } from '../shared/bounds.ts'
import type { EmailChange } from '../store.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
import { finish } from './outcome.ts'

const deadlineMs = 10_000

export const retryEmail = (
  { clock, operators, schema }: PostgresContext,
  id: EmailId,
): Promise<EmailChange> =>
  operators.transaction(async (query) => {
    const state = await lockQueued(query, schema, id)
    if (state === 'queued') return 'not_deferred'
    if (state !== 'deferred') return state
    const now = clockMs('$2')
    const text = `update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = ${now} where email_id = $1`
    await query(text, [id, clock.offsetMs])
    return 'done'
  }, deadlineMs)

export async function retryDeferred(
  { clock, operators, schema }: PostgresContext,
  app: AppId | null,
): Promise<number> {
  const now = clockMs('$1')
  const text = `with due as (
      select email_id from ${schema}.queue where state = 'deferred' and ($2::text is null or app_id = $2)
      order by due_at limit $3 for update skip locked)
    update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = ${now}
    where email_id = any(array(select email_id from due)) and state = 'deferred' returning email_id`
  return (await operators.query(text, [clock.offsetMs, app, stepMax], { deadlineMs })).length
}

export const cancelEmail = (
  { clock, operators, schema, slot }: PostgresContext,
  id: EmailId,
): Promise<EmailChange> =>
  operators.transaction(async (query) => {
    const state = await lockQueued(query, schema, id)
    if (state !== 'queued' && state !== 'deferred') return state
    const text = `select ${schema}.${finish.name}($1, ${clockMs('$2')}, array[$3], '{cancelled}', '{by_operator}', '{null}')`
    await query(text, [slot, clock.offsetMs, id])
    return 'done'
  }, deadlineMs)

async function lockQueued(
  query: Query,
  schema: string,
  id: EmailId,
): Promise<LiveState | 'finished' | 'not_found'> {
  const [row] = await query<{ state: LiveState }>(
    `select state from ${schema}.queue where email_id = $1 for update`,
    [id],
  )
  if (row !== undefined) return row.state
  const finished = await query(`select from ${schema}.history where email_id = $1`, [id])
  return finished.length === 0 ? 'not_found' : 'finished'
}
