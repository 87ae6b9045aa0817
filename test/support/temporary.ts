/** Resources that a test removes at its end, the newest first. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where endings are registered: a context of `node:test`, or `{ after }`. */
export type Scope = { after(end: () => unknown): void }

const endings = new WeakMap<Scope, (() => unknown)[]>()

/** Registers an ending. Endings run in reverse order, all of them even if one fails. */
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
