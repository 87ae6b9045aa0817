/** A temporary folder that is gone when the test is. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What tests register their endings with: `node:test` contexts do. */
export type Scope = { after(end: () => unknown): void }

export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
