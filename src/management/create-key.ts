/** Makes a delivery key. Its clear text exists only in the result. */

import type { App } from '../domain/app/app.ts'
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import type { KeyRecord, Store } from '../store/store.ts'
import { done, type Result, refuse } from './result.ts'

export type NewKey = { readonly name: string | null; readonly expiresAt: number | null }
export type CreatedKey = { readonly record: KeyRecord; readonly key: string }

export async function createKey(
  store: Pick<Store, 'createKey' | 'now'>,
  app: App,
  { name, expiresAt }: NewKey,
): Promise<Result<CreatedKey>> {
  if (expiresAt !== null && expiresAt <= store.now()) return refuse('invalid', '--expires is in the past')
  const key = newDeliveryKey()
  const record = await store.createKey({ app: app.id, hash: hashDeliveryKey(key), name, expiresAt })
  return done({ record, key })
}
