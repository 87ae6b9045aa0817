/** The audit: its entries, written in the transaction of the change that they record, and their list. */

import { dayMs } from '../../domain/duration.ts'
import { type AppId, type AuditId, newId, type TokenId } from '../../domain/id.ts'
import type { Action, Actor, AuditAction, AuditEntry } from '../../domain/operator/audit.ts'
import type { AuditQuery, ListPage } from '../operator-store.ts'
import type { Row } from '../shared/rows.ts'
import { cutPage, oneMore, present, readRange, readStep, type Scan } from './list-pages.ts'
import type { Script, ScriptContext } from './script.ts'

/** Writes the entry of a change, and counts its characters for its app and its actor. */
export function* recordAction(
  { prefix, nowMs }: ScriptContext,
  { action, app, target, before, after }: Action,
  actor: Actor,
): Script<void> {
  const values = [before && JSON.stringify(before), after && JSON.stringify(after)]
  const characters = values.reduce((sum, text) => sum + (text?.length ?? 0), entryCharacters)
  // The app first: each change locks its app first, so that no two transactions wait for each other.
  const owners = [actor.ofService === true ? null : app, actor.id]
  for (const owner of owners.filter((id) => id !== null))
    yield {
      text: `insert into ${prefix}audit_day as known (owner, day, characters) values ($1, $2, $3)
        on conflict (owner) do update set day = excluded.day, characters = excluded.characters
          + case when known.day = excluded.day then known.characters else 0 end`,
      values: [owner, Math.floor(nowMs / dayMs), characters],
    }
  yield {
    text: `insert into ${prefix}audit
        (audit_id, at, actor_kind, actor_id, actor_name, via, action, app_id, target, before, after, request_id)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    values: [
      ...[newId('au', nowMs), nowMs, actor.kind, actor.id, actor.name, actor.via, action, app, target],
      ...[...values, actor.requestId],
    ],
  }
}

/** The size of an entry without its values, with its indexes, to the next hundred. */
const entryCharacters = 300

/** The characters that the entries of an app or an actor have added today (UTC); the most of several. */
function* readAuditedToday({ nowMs, prefix }: ScriptContext, owners: readonly string[]): Script<number> {
  const places = owners.map((_, n) => `$${n + 2}`).join(', ')
  const [row] = yield {
    text: `select max(characters) as most from ${prefix}audit_day where day = $1 and owner in (${places})`,
    values: [Math.floor(nowMs / dayMs), ...owners],
  }
  return Number(row?.most ?? 0)
}

function* listAudit(
  { prefix }: ScriptContext,
  { app, actions, actor, since, until, before, limit }: AuditQuery,
): Script<ListPage<AuditEntry, AuditId>> {
  const scan: Scan = {
    table: `${prefix}audit`,
    id: 'audit_id',
    indexed: present({ app_id: app }),
    filters: present({ action: actions, actor_name: actor && { contains: actor } }),
    ...readRange('au', { since, until, before }),
    limit: oneMore(limit),
  }
  const { rows, end } = yield* readStep(scan)
  return cutPage(rows.map(toAuditEntry), [end], limit)
}

const toAuditEntry = (row: Row): AuditEntry => ({
  id: row.audit_id as AuditId,
  at: row.at as number,
  actor: {
    kind: row.actor_kind as AuditEntry['actor']['kind'],
    id: row.actor_id as TokenId | null,
    name: row.actor_name as string,
    via: row.via as AuditEntry['actor']['via'],
    requestId: row.request_id as string | null,
  },
  action: row.action as AuditAction,
  app: row.app_id as AppId | null,
  target: row.target as string,
  before: row.before === null ? null : JSON.parse(row.before as string),
  after: row.after === null ? null : JSON.parse(row.after as string),
})

export const auditChanges = { recordAction }
export const auditReads = { listAudit, readAuditedToday }
