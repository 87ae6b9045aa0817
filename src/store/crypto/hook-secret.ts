/** The secrets by which auth servers sign, sealed for the hash of their key. */
import type { HookStore, SealedSecret } from '../hook-store.ts'
import { type KeyRing, openText, resealAll, sealText } from './key-ring.ts'

type Named = Pick<SealedSecret, 'hash'>

const toContext = ({ hash }: Named): string => `hook secret ${hash}`

export const sealHookSecret = (ring: KeyRing, named: Named, secret: string): string =>
  sealText(ring, toContext(named), secret)

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openHookSecret = (ring: KeyRing, secret: Omit<SealedSecret, 'id'>): string | null =>
  openText(ring, toContext(secret), secret.sealed)

/** Returns those that the ring cannot open. */
export async function resealHookSecrets(
  ring: KeyRing,
  store: Pick<HookStore, 'listHookKeys' | 'resealHookSecret'>,
): Promise<readonly SealedSecret[]> {
  const secrets = (await store.listHookKeys()).flatMap(({ hash, id, sealed }): SealedSecret[] =>
    sealed === null ? [] : [{ hash, id, sealed }],
  )
  return resealAll(ring, secrets, {
    context: toContext,
    write: (secret, sealed) => store.resealHookSecret(secret, sealed),
  })
}
