/** What a test makes and must be rid of at its end: last made, first ended. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What endings are registered with: contexts of `node:test` are, and `{ after }` is. */
export type Scope = { after(end: () => unknown): void }

const endings = new WeakMap<Scope, (() => unknown)[]>()

/** Registers an ending. They run in reverse order, each even if another fails. */
export function atEnd(scope: Scope, end: () => unknown): void {
  const known = endings.get(scope)
  if (known !== undefined) return void known.push(end)
  const ends = [end]
  endings.set(scope, ends)
  scope.after(async () => {
    const failures: unknown[] = []
    for (const next of ends.reverse()) {
      try {
        await next()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  })
}

export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
  atEnd(scope, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
