/**
 * Functions in the database, so that a transaction of many statements is one round trip. Each is
 * named for its own text (`enqueue_3f2a9c01`), so that a program always calls exactly the function
 * it was written with, and old and new programs can run side by side.
 */
import { hash } from 'node:crypto'

export type SqlFunction = {
  /** With the schema, as it is written in SQL: `postern.enqueue_3f2a9c01`. */
  readonly name: string
  readonly definition: string
}

/** Plans are made once and must fit a full queue, also where they were made on an empty one. */
const settings = `set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off`

/** A PL/pgSQL function: `signature` is what stands between its name and its body. */
export function sqlFunction(name: string, signature: string, body: string, more = ''): SqlFunction {
  const text = `${signature} language plpgsql ${settings} ${more} as $$\n#variable_conflict use_column\n${body}$$`
  const full = `postern.${name}_${hash('sha256', text, 'hex').slice(0, 8)}`
  return { name: full, definition: `create function ${full}${text}` }
}

/** Milliseconds since 1970 on the database's clock. Not now(): that is when the transaction began. */
export const clockMs = (offsetMs: string): string =>
  `(floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${offsetMs})`
