/** Ids by how they begin, as pages and tables show them. */
import type { Script, ScriptContext } from './script.ts'

/** By the kind of an id, the tables that hold such ids, with their columns. */
const places = new Map(
  Object.entries({
    em: ['queue.email_id', 'history.email_id'],
    key: ['delivery_key.key_id'],
    tok: ['token.token_id'],
    pe: ['person.person_id'],
    ses: ['session.session_id'],
    sp: ['suppression.suppression_id'],
    wh: ['webhook_message.message_id'],
    req: ['refusal.request_id'],
  }),
)

/** Sorts after every character of an id. */
const last = '~'

function* findIdsFrom({ prefix }: ScriptContext, start: string): Script<string[]> {
  const found = new Set<string>()
  for (const place of places.get(start.slice(0, start.indexOf('_'))) ?? []) {
    const [table, column] = place.split('.')
    const rows = yield {
      text: `select ${column} as id from ${prefix}${table} where ${column} > $1 and ${column} < $2 order by ${column} limit 2`,
      values: [start, `${start}${last}`],
    }
    for (const { id } of rows) found.add(id as string)
  }
  return [...found].slice(0, 2)
}

export const idReads = { findIdsFrom }
