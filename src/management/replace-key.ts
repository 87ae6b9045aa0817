/** Replaces a delivery key: a new one is made, and the old one goes on working for a while. */
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import type { KeyId } from '../domain/id.ts'
import type { Store } from '../store/store.ts'
import type { CreatedKey } from './create-key.ts'
import { noSuchKey } from './no-such-key.ts'
import { done, type Result, refuse } from './result.ts'

export type Replacement = {
  /** The end of the new key; null: none. */
  readonly expiresAt: number | null
  /** How long the old key goes on working, if it does not end before. */
  readonly graceMs: number
}

export async function replaceKey(
  store: Pick<Store, 'replaceKey' | 'now'>,
  id: string,
  { expiresAt, graceMs }: Replacement,
): Promise<Result<CreatedKey>> {
  if (expiresAt !== null && expiresAt <= store.now()) return refuse('invalid', '--expires is in the past')
  const key = newDeliveryKey()
  const next = { hash: hashDeliveryKey(key), expiresAt, oldExpiresAt: store.now() + graceMs }
  const record = await store.replaceKey(id as KeyId, next)
  if (record === null) return noSuchKey(id)
  if (record === 'ended')
    return refuse(
      'conflict',
      `the key ${id} is revoked or has expired; make one with "postern key create APP"`,
    )
  return done({ record, key })
}
