/**
 * The reads of `operators/`, on read-only connections. In WAL mode readers neither wait for the writer nor
 * delay it.
 */
import { bindScript, reads, snapshotReads } from '../../scripts/scripts.ts'
import { runOn, type ScriptTarget } from '../engine/run-script.ts'
import type { Call } from './calls.ts'

export const allReads = { ...reads, ...snapshotReads }
export type ReadName = keyof typeof allReads

export function performRead(target: ScriptTarget, { name, args }: Call<ReadName>): unknown {
  const run = () => runOn(target, bindScript(allReads[name], args))
  return name in snapshotReads ? inSnapshot(target, run) : run()
}

/** All statements see one state of the database. */
function inSnapshot<T>({ sql }: ScriptTarget, work: () => T): T {
  sql('begin').run()
  try {
    return work()
  } finally {
    sql('commit').run()
  }
}
