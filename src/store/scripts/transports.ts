/** The lists of relays that apps may use. */
import { transportsMax } from '../../domain/delivery/transport.ts'
import type { Row } from '../shared/rows.ts'
import type { StoredTransport, TransportStore } from '../transport-store.ts'
import { recordAction } from './audit.ts'
import { readAll, readOne, type Script, type ScriptContext } from './script.ts'

type Parameter<Name extends keyof TransportStore, Index extends 0 | 1> = Parameters<TransportStore[Name]>[Index]

function* putTransport(
  context: ScriptContext,
  { after, before, name, sealed }: Parameter<'putTransport', 0>,
  actor: Parameter<'putTransport', 1>,
): Script<StoredTransport | 'too_many'> {
  const { nowMs, prefix } = context
  const others = { text: `select name from ${prefix}transport where name <> $1`, values: [name] }
  if ((yield others).length >= transportsMax) return 'too_many'
  const put = {
    text: `insert into ${prefix}transport (name, sealed, created_at, changed_at) values ($1, $2, $3, $3)
      on conflict (name) do update set sealed = excluded.sealed, changed_at = excluded.changed_at
      returning *`,
    values: [name, sealed, nowMs],
  }
  const stored = yield* readOne(put, toTransport)
  if (stored === null) throw new Error('a transport was not stored')
  const facts = { before: before && { relays: before }, after: { relays: after } }
  yield* recordAction(context, { action: 'transport.put', app: null, target: name, ...facts }, actor)
  return stored
}

function* deleteTransport(
  context: ScriptContext,
  name: string,
  actor: Parameter<'deleteTransport', 1>,
): Script<boolean> {
  const deleted = { text: `delete from ${context.prefix}transport where name = $1 returning name`, values: [name] }
  if ((yield deleted).length === 0) return false
  const action = { action: 'transport.delete', app: null, target: name, before: null, after: null } as const
  yield* recordAction(context, action, actor)
  return true
}

function* resealTransport(
  { prefix }: ScriptContext,
  { name, sealed }: Parameter<'resealTransport', 0>,
  resealed: string,
): Script<void> {
  const text = `update ${prefix}transport set sealed = $3 where name = $1 and sealed = $2`
  yield { text, values: [name, sealed, resealed] }
}

function* listTransports({ prefix }: ScriptContext): Script<StoredTransport[]> {
  return yield* readAll({ text: `select * from ${prefix}transport order by name`, values: [] }, toTransport)
}

const toTransport = (row: Row): StoredTransport => ({
  name: row.name as string,
  sealed: row.sealed as string,
  createdAt: row.created_at as number,
  changedAt: row.changed_at as number,
})

export const transportChanges = { putTransport, deleteTransport, resealTransport }
export const transportReads = { listTransports }
