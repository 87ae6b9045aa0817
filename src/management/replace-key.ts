/** Replaces a delivery key: a new one is made, and the old one goes on working for a while. */
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import type { KeyId } from '../domain/id.ts'
import type { Store } from '../store/store.ts'
import type { CreatedKey } from './create-key.ts'
import { done, type Result, refuse } from './result.ts'

/** @param graceMs how long the old key goes on working */
export async function replaceKey(
  store: Pick<Store, 'replaceKey' | 'now'>,
  id: string,
  graceMs: number,
): Promise<Result<CreatedKey>> {
  const key = newDeliveryKey()
  const next = { hash: hashDeliveryKey(key), expiresAt: store.now() + graceMs }
  const record = await store.replaceKey(id as KeyId, next)
  if (record === null) return refuse('not_found', noSuchKey(id))
  if (record === 'ended')
    return refuse(
      'conflict',
      `the key ${id} is revoked or has expired; make one with "postern key create APP"`,
    )
  return done({ record, key })
}

export const noSuchKey = (id: string): string =>
  `there is no key "${id}"; give its id (key_…), as "postern key list APP" shows it`
