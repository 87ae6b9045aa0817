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

/**
 * Milliseconds since 1970 on the database's clock. Not now(): that is when the transaction began. As
 * a sub-select it is read once a statement, so that an index can be searched by it.
 */
export const clockMs = (offsetMs: string): string =>
  `(select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${offsetMs})`

/**
 * A statement of PL/pgSQL for what is promised to be kept: the commit waits for the disk whatever
 * the default is, and warns (of a wait for a standby that was cancelled) whatever is suppressed.
 * For this transaction only, which outlives the function.
 */
export const commitDurably = `if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform set_config('client_min_messages', 'warning', true);`

/** Below what is waited for here, so that the server gives up on a lock first, cleanly. */
export const lockTimeout = "set lock_timeout = '1500ms'"

/**
 * One transaction of a kind at a time for one process: where commits wait for a standby that is
 * gone, the backends that were given up would else add up.
 */
export const oneAtATime = (self: string, kind: 1 | 2): string =>
  `perform pg_advisory_xact_lock(${self}, ${kind});`
