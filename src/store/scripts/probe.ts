/**
 * Asks the store whether it can write, for readiness and for the status: a read says too little. On
 * PostgreSQL each statement is a transaction of its own, so that a process that hangs between them holds no
 * lock.
 */
import { randomUUID } from 'node:crypto'
import type { Script, ScriptContext } from './script.ts'

function* probeWrite({ prefix }: ScriptContext): Script<void> {
  yield {
    text: `insert into ${prefix}probe (probe_id, nonce) values (1, $1)
      on conflict (probe_id) do update set nonce = excluded.nonce`,
    values: [randomUUID()], // SQLite writes nothing for a row that stays as it is
  }
  // It changes no row, and waits for the locks that queueing waits for.
  yield { text: `update ${prefix}queue set due_at = due_at where email_id = ''`, values: [] }
}

export const probes = { probeWrite }
