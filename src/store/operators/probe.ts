/** Asks the store whether it can write, for readiness and for the status: a read says too little. */
import type { Script, ScriptContext } from './script.ts'

/**
 * A write that changes nothing, and is committed as an email would be: it takes the lock that queueing takes.
 */
function* probeWrite({ dialect, prefix }: ScriptContext): Script<void> {
  if (dialect.locksRows) yield { text: `lock table ${prefix}queue in row exclusive mode`, values: [] }
  yield { text: `update ${prefix}secret set sealed = sealed where name = 'hash-key'`, values: [] }
}

export const probes = { probeWrite }
