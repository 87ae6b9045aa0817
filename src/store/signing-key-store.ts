/** The part of a store that keeps the keys which sign mail. The rules of `store.ts` hold. */
import type { SigningKey } from '../domain/delivery/signing-key.ts'
import type { AppId } from '../domain/id.ts'
import type { Actor } from '../domain/operator/audit.ts'

export type SigningKeyRecord = SigningKey & {
  /** The private key, sealed by the key ring, as base64url. */
  readonly sealed: string
}

export type NewSigningKey = Pick<SigningKeyRecord, 'domain' | 'selector' | 'algorithm' | 'publicKey' | 'sealed'>

/** A change that an operator makes by way of an app, whose From address is in the domain. */
type SigningKeyChange = Pick<SigningKey, 'domain' | 'selector'> & { readonly app: AppId }

export interface SigningKeyStore {
  /** The active keys of a domain, in the order in which they sign. It waits for no operator. */
  findSigningKeys(domain: string): Promise<SigningKeyRecord[]>
  /** The keys of a domain, oldest first; null for those of all domains. */
  listSigningKeys(domain: string | null): Promise<SigningKeyRecord[]>
  /** A pending key. `taken`: the domain has this selector. `too_many`: it has `signingKeysMax` keys. */
  addSigningKey(
    key: NewSigningKey & { readonly app: AppId },
    actor: Actor,
  ): Promise<SigningKeyRecord | 'taken' | 'too_many'>
  /** The key signs from now on, and the one that did is retired. Null if there is no such key. */
  activateSigningKey(change: SigningKeyChange, actor: Actor): Promise<SigningKeyRecord | null>
  /** Null if there is no such key. */
  removeSigningKey(change: SigningKeyChange, actor: Actor): Promise<SigningKeyRecord | null>
  /** Stores a key that was sealed anew, unless it was changed since it was read. */
  resealSigningKey(key: Pick<SigningKeyRecord, 'domain' | 'selector' | 'sealed'>, resealed: string): Promise<void>
}
