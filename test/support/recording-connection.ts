/** A connection to a database file that records the statements which run on it, with their steps. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { StatementSync } from 'node:sqlite'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { newRing } from './service.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

/** One execution of a statement. `steps`: instructions of SQLite's virtual machine; `changes`: rows. */
export type Execution = { readonly text: string; readonly steps: number; readonly changes: number }

/** The types of `node:sqlite` do not know these methods. */
type Counting = StatementSync & { resetStats(): void; stat(name: 'vmStep'): number }

/** Methods that execute a statement to its end. */
const executing = ['all', 'get', 'run', 'iterate'] as const

export class RecordingConnection extends Connection {
  readonly texts = new Set<string>()
  executions: Execution[] = []
  readonly #recorded = new Map<string, StatementSync>()

  override sql(text: string): StatementSync {
    this.texts.add(text)
    let statement = this.#recorded.get(text)
    if (statement === undefined) {
      statement = this.#recording(text, super.sql(text) as Counting)
      this.#recorded.set(text, statement)
    }
    return statement
  }

  #recording(text: string, statement: Counting): StatementSync {
    for (const name of executing) {
      const execute = (name === 'iterate' ? statement.all : statement[name]).bind(statement)
      Object.defineProperty(statement, name, {
        value: (...args: []) => {
          const before = this.#changes()
          statement.resetStats()
          const result = execute(...args)
          const steps = statement.stat('vmStep')
          this.executions.push({ text, steps, changes: this.#changes() - before })
          return name === 'iterate' && Array.isArray(result) ? result.values() : result
        },
      })
    }
    return statement
  }

  /** The rows that this connection has changed so far. */
  #changes(): number {
    return Number(super.sql('select total_changes() as rows').get()?.rows)
  }

  /** The parts of all plans that read a table or an index from its beginning, but for what is small. */
  scans(): string[] {
    const explained = [...this.texts].filter((text) => /^\s*(select|delete|update|with)/.test(text))
    const rows = explained.flatMap((text) => this.connection.prepare(`explain query plan ${text}`).all())
    return rows.map(({ detail }) => String(detail)).filter((detail) => detail.startsWith('SCAN') && !isSmall(detail))
  }
}

/**
 * There are few suspects and few apps that are not active; `queue_depth` has one row; the outer statement of
 * a step with filters reads what the step has read.
 */
const isSmall = (detail: string): boolean =>
  /^SCAN (queue USING INDEX queue_suspect|app USING INDEX app_inactive|queue_depth|small|step|\(subquery)/.test(detail)

/** A new database file. */
export async function openRecording(t: Scope): Promise<RecordingConnection> {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 1000, onFatal: assert.fail })
  await store.close()
  const connection = new RecordingConnection(path)
  atEnd(t, () => connection.close())
  return connection
}
