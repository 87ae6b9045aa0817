/** The secrets by which auth servers sign, sealed for the hash of their key. */
import type { HookStore, SealedSecret } from '../hook-store.ts'
import { type KeyRing, seal, sealingKeyId, unseal } from './key-ring.ts'

type Named = Pick<SealedSecret, 'hash'>

const toContext = ({ hash }: Named): string => `hook secret ${hash}`

export const sealHookSecret = (ring: KeyRing, named: Named, secret: string): string =>
  seal(ring, toContext(named), secret).toString('base64url')

/** Null if the ring lacks the key that sealed it, or it was altered. */
export function openHookSecret(ring: KeyRing, secret: Omit<SealedSecret, 'id'>): string | null {
  try {
    return unseal(ring, toContext(secret), Buffer.from(secret.sealed, 'base64url'))
  } catch {
    return null
  }
}

/**
 * Seals all secrets with the first key of the ring, so that the others can be removed from it. Returns those
 * that the ring cannot open, which stay as they are.
 */
export async function resealHookSecrets(
  ring: KeyRing,
  store: Pick<HookStore, 'listHookKeys' | 'resealHookSecret'>,
): Promise<readonly SealedSecret[]> {
  const closed: SealedSecret[] = []
  for (const { hash, id, sealed } of await store.listHookKeys()) {
    if (sealed === null) continue
    const secret = { hash, id, sealed }
    const text = openHookSecret(ring, secret)
    if (text === null) closed.push(secret)
    else if (sealingKeyId(Buffer.from(secret.sealed, 'base64url')) !== ring[0].id)
      await store.resealHookSecret(secret, sealHookSecret(ring, secret, text))
  }
  return closed
}
