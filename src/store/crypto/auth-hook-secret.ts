/** The secrets by which auth servers sign, sealed for the hash of their key. */
import type { AuthHookStore, SealedSecret } from '../auth-hook-store.ts'
import { type KeyRing, openText, resealAll, sealText } from './key-ring.ts'

type Named = Pick<SealedSecret, 'hash'>

const toContext = ({ hash }: Named): string => `hook secret ${hash}`

export const sealAuthHookSecret = (ring: KeyRing, named: Named, secret: string): string =>
  sealText(ring, toContext(named), secret)

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openAuthHookSecret = (ring: KeyRing, secret: Omit<SealedSecret, 'id'>): string | null =>
  openText(ring, toContext(secret), secret.sealed)

/** Returns those that the ring cannot open. */
export async function resealAuthHookSecrets(
  ring: KeyRing,
  store: Pick<AuthHookStore, 'listAuthHookKeys' | 'resealAuthHookSecret'>,
): Promise<readonly SealedSecret[]> {
  const secrets = (await store.listAuthHookKeys()).flatMap(({ hash, id, sealed }): SealedSecret[] =>
    sealed === null ? [] : [{ hash, id, sealed }],
  )
  return resealAll(ring, secrets, {
    context: toContext,
    write: (secret, sealed) => store.resealAuthHookSecret(secret, sealed),
  })
}
