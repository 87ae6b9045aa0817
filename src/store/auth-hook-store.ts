/** The part of a store that keeps the secrets of auth servers. The rules of `store.ts` hold. */
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { AuthHookName } from '../domain/auth-hooks/auth-hook-settings.ts'
import type { AppId, KeyId } from '../domain/id.ts'

/** The hash of the key of an auth server, and its secret, sealed; null if it sends the key itself. */
export type AuthHookSecretRecord = {
  readonly hash: KeyHash
  readonly hook: AuthHookName
  readonly sealed: string | null
}

export type SealedSecret = { readonly id: KeyId; readonly hash: KeyHash; readonly sealed: string }

/** A key by which an auth server posts to an app. */
export type AuthHookKey = AuthHookSecretRecord & {
  readonly id: KeyId
  readonly app: AppId
}

export interface AuthHookStore {
  /** The secrets that work now for a hook of an active app, or for every one (null), newest first. */
  listAuthHookSecrets(slug: string, hook: AuthHookName | null): Promise<readonly AuthHookSecretRecord[]>
  /** The keys of all auth servers that have not ended. */
  listAuthHookKeys(): Promise<readonly AuthHookKey[]>
  /** Replaces a sealed secret, unless it has changed meanwhile. */
  resealAuthHookSecret(secret: SealedSecret, resealed: string): Promise<void>
}
