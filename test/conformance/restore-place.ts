/** Shared by the tests of a restore: a SQLite database, the path of its backup, and both commands. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { formatKeyRing, type KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { Found, Restored } from '../../src/store/database-facts.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { postern, posternJson } from '../support/cli.ts'
import { newRing } from '../support/service.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'

export type Place = {
  readonly path: string
  readonly ring: KeyRing
  readonly env: Record<string, string>
  readonly backup: string
}

export function newPlace(t: Scope, ring = newRing()): Place {
  const folder = temporaryFolder(t)
  const path = join(folder, 'postern.db')
  const env = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  return { path, ring, env, backup: join(folder, 'backup.db') }
}

export async function inStore<T>({ path, ring }: Place, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

export async function backUp({ env, backup }: Place): Promise<void> {
  const ran = await postern(env, ['backup', backup])
  assert.equal(ran.code, 0, ran.err)
}

/** The text that a restore prints. */
export async function restoreText({ env, backup }: Place, file = backup): Promise<string> {
  const ran = await postern(env, ['restore', file])
  assert.equal(ran.code, 0, ran.err)
  return ran.out
}

export const restoreJson = (
  { env, backup }: Place,
  file = backup,
  ...options: string[]
): Promise<Restored & { previous: string }> => posternJson(env, ['restore', file, ...options])

/** Kinds of which something was found. */
export const present = (byKind: Readonly<Record<string, Found>> | null): Record<string, Found> => {
  assert.ok(byKind)
  const isFilled = (found: Found) =>
    Array.isArray(found) ? found.length > 0 : Object.values(found).some((value) => value > 0)
  return Object.fromEntries(Object.entries(byKind).filter(([, found]) => isFilled(found)))
}
