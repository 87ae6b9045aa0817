/** Revokes a delivery key. */
import type { KeyId } from '../domain/id.ts'
import type { KeyRecord, Store } from '../store/store.ts'
import { noSuchKey } from './no-such-key.ts'
import { done, type Result } from './result.ts'

export async function revokeKey(store: Pick<Store, 'revokeKey'>, id: string): Promise<Result<KeyRecord>> {
  const key = await store.revokeKey(id as KeyId)
  if (key !== null) return done(key)
  return noSuchKey(id)
}
