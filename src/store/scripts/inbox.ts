/** The emails of test keys. */
import { inboxMax, inboxMs } from '../../domain/bounds.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { InboxQuery, InboxStore, StoredInboxEmail } from '../inbox-store.ts'
import { type Filter, present, toCondition } from './list-pages.ts'
import { readAll, type Script, type ScriptContext } from './script.ts'

type Kept = Parameters<InboxStore['keepInboxEmail']>[0]

function* keepInboxEmail({ nowMs, prefix }: ScriptContext, { id, sealed }: Kept): Script<void> {
  const [kept] = yield {
    text: `insert into ${prefix}inbox_email (email_id, app_id, type, recipient, at, sealed)
      select email_id, replace(app_id, 'test_', 'app_'), type, recipient, cast($2 as bigint), $3
      from ${prefix}queue where email_id = $1 on conflict (email_id) do nothing returning app_id`,
    values: [id, nowMs, sealed],
  }
  if (kept === undefined) return
  yield {
    text: `delete from ${prefix}inbox_email where app_id = $1
      and seq <= (select seq from ${prefix}inbox_email where app_id = $1 order by seq desc limit 1 offset ${inboxMax})`,
    values: [kept.app_id as AppId],
  }
}

function* listInbox(
  { nowMs, prefix }: ScriptContext,
  { after, app, limit, order, recipient, since = 0, type }: InboxQuery,
): Script<StoredInboxEmail[]> {
  const filters: Filter[] = [
    ['app_id', app],
    ['at', { above: Math.max(nowMs - inboxMs, since - 1) }],
    ...present({ type, recipient, seq: after === undefined ? undefined : { above: after } }),
  ]
  const values: (string | number)[] = []
  const where = filters.map((filter) => toCondition(filter, (value) => `$${values.push(value)}`))
  const text = `select seq, email_id, at, sealed from ${prefix}inbox_email where ${where.join(' and ')}
    order by seq ${order === 'newest' ? 'desc' : 'asc'} limit ${Math.floor(limit)}`
  return yield* readAll({ text, values }, (row) => ({
    seq: row.seq as number,
    id: row.email_id as EmailId,
    at: row.at as number,
    sealed: row.sealed as string,
  }))
}

export const inboxDeliveries = { keepInboxEmail }
export const inboxReads = { listInbox }
