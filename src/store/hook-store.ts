/** The part of a store that keeps the secrets of auth servers. The rules of `store.ts` hold. */
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { HookSystemName } from '../domain/hooks/hook-settings.ts'
import type { AppId, KeyId } from '../domain/id.ts'

/** The hash of the key of an auth server, and its secret, sealed; null if it sends the key itself. */
export type HookSecretRecord = { readonly hash: KeyHash; readonly sealed: string | null }

export type SealedSecret = { readonly id: KeyId; readonly hash: KeyHash; readonly sealed: string }

/** A key by which an auth server posts to an app. */
export type HookKey = HookSecretRecord & {
  readonly id: KeyId
  readonly app: AppId
  readonly hook: HookSystemName
}

export interface HookStore {
  /** The secrets that work now for the hook of an active app, newest first. */
  listHookSecrets(slug: string, hook: HookSystemName): Promise<readonly HookSecretRecord[]>
  /** The keys of all auth servers that have not ended. */
  listHookKeys(): Promise<readonly HookKey[]>
  /** Replaces a sealed secret, unless it has changed meanwhile. */
  resealHookSecret(secret: SealedSecret, resealed: string): Promise<void>
}
