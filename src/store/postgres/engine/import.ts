/** Fills an empty database with what another one held, in one transaction. */
import type { PostgresAddress } from '../../database-address.ts'
import type { CopiedCounts, CopiedRows, CopiedTable } from '../../shared/table-copy.ts'
import { StoreUnavailable } from '../../store.ts'
import { Connection, type Query } from './connection.ts'
import { makeSchema } from './migrate.ts'

/** The whole copy is one transaction. */
const deadlineMs = 3_600_000

const [text, integer, bigint, json, jsonb, bytea] = ['text', 'integer', 'bigint', 'json', 'jsonb', 'bytea']
const record = {
  ...{ email_id: text, app_id: text, key_id: text, type: text, state: text, attempts: integer },
  ...{
    lost_leases: integer,
    accepted_at: bigint,
    expires_at: bigint,
    recipient: text,
    trail: jsonb,
    traceparent: text,
  },
}

/** The columns of each table, with their types. */
const columnsOf: Record<CopiedTable, Readonly<Record<string, string>>> = {
  app: {
    ...{ app_id: text, slug: text, version: bigint, status: text, status_at: bigint, created_at: bigint },
    ...{ updated_at: bigint, settings: json },
  },
  delivery_key: {
    ...{ key_id: text, key_hash: text, app_id: text, name: text, created_at: bigint, expires_at: bigint },
    ...{ created_by: text, revoked_at: bigint, last_used_at: bigint, replaces: text },
  },
  token: {
    ...{ token_id: text, token_hash: text, name: text, role: text, apps: json, created_at: bigint },
    ...{ created_by: text, expires_at: bigint, revoked_at: bigint, last_used_at: bigint },
  },
  person: {
    ...{ person_id: text, name: text, role: text, apps: json, oidc_issuer: text, oidc_subject: text },
    ...{ created_at: bigint, created_by: text, disabled_at: bigint, last_seen_at: bigint },
  },
  passkey: {
    ...{ passkey_id: text, person_id: text, public_key: text, counter: bigint, name: text },
    ...{ created_at: bigint, last_used_at: bigint },
  },
  audit: {
    ...{ audit_id: text, at: bigint, actor_kind: text, actor_id: text, actor_name: text, via: text },
    ...{ action: text, app_id: text, target: text, before: json, after: json, request_id: text },
  },
  activity: { app_id: text, minute: bigint, event: text, count: bigint },
  refusal: {
    ...{ request_id: text, at: bigint, app_id: text, key_id: text, code: text, issues: json, origin: text },
  },
  idempotency: { app_id: text, request_key: text, body_hash: text, email_id: text, created_at: bigint },
  usage_day: { app_id: text, day: bigint, event: text, slot: integer, count: bigint },
  queue: {
    ...record,
    ...{
      fence: bigint,
      due_at: bigint,
      wanted_at: bigint,
      lease_until: bigint,
      session_id: integer,
      sealed: bytea,
    },
  },
  history: { ...record, reason: text, finished_at: bigint },
  secret: { name: text, sealed: bytea },
}

/**
 * Makes the schema and fills it. Throws `StoreUnavailable` if it exists: a process that uses it would keep
 * its hash key. After any failure nothing is there.
 * @returns the rows of each table
 */
export async function importRows(
  address: PostgresAddress,
  steps: Iterable<CopiedRows>,
  onCommitted: () => void,
): Promise<{ readonly copied: CopiedCounts }> {
  const { schema } = address
  const connection = new Connection({ address })
  try {
    const copied = await connection.transaction(async (query) => {
      if ((await makeSchema(query, { schema, schemaUse: 'migrate' })) > 0) {
        throw new StoreUnavailable(
          `the target has the schema "${schema}" already, of a copy that was made before or of another Postern: name an empty database, or another schema (?schema=)`,
        )
      }
      await query("set local synchronous_commit = 'on'")
      const counts = await insertAll(query, steps)
      await query('insert into app_lock (app_id) select app_id from app')
      await query('update queue_depth set count = (select count(*) from queue) where slot = 0')
      await requireCounts(query, counts)
      return counts
    }, deadlineMs)
    onCommitted()
    return { copied }
  } finally {
    await connection.close()
  }
}

async function insertAll(query: Query, steps: Iterable<CopiedRows>): Promise<CopiedCounts> {
  const counts = Object.fromEntries(Object.keys(columnsOf).map((table) => [table, 0])) as Record<
    CopiedTable,
    number
  >
  for (const { table, rows } of steps) {
    const columns = Object.entries(columnsOf[table])
    requireColumns(table, rows[0])
    const names = columns.map(([name]) => name).join(', ')
    const values = columns.map(([name, type]) => (isJson(type) ? `${name}::${type}` : name)).join(', ')
    const parameters = columns.map(([, type], n) => `$${n + 1}::${isJson(type) ? text : type}[]`).join(', ')
    await query(
      `insert into ${table} (${names}) select ${values} from unnest(${parameters}) as copied (${names})`,
      columns.map(([name]) => rows.map((row) => toValue(row[name]))),
    )
    counts[table] += rows.length
  }
  return counts
}

/** A column that one side does not know would be lost, or be null. */
function requireColumns(table: CopiedTable, row: Readonly<Record<string, unknown>> = columnsOf[table]): void {
  const [given, known] = [row, columnsOf[table]].map((columns) => Object.keys(columns).sort().join(', '))
  if (given !== known) throw new Error(`the columns of ${table} are ${given}, and the copy knows ${known}`)
}

const isJson = (type: string | undefined): boolean => type === json || type === jsonb

const toValue = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value) : value)

async function requireCounts(query: Query, counts: CopiedCounts): Promise<void> {
  for (const [table, count] of Object.entries(counts)) {
    const [row] = await query<{ found: string }>(`select count(*) as found from ${table}`)
    if (Number(row?.found) === count) continue
    throw new StoreUnavailable(
      `${count} rows of ${table} were copied and ${row?.found} are there; nothing was kept`,
    )
  }
}
