/** Delivery keys: the bearer secrets with the prefix `pst_`, which apps send with their requests. */
import { hashBearer, hashIfSecret, newBearer, type Presented, parseBearer } from '../bearer.ts'

declare const brand: unique symbol
/** SHA-256 of a delivery key, base64url. */
export type KeyHash = string & { readonly [brand]: 'KeyHash' }

const prefix = 'pst_'

/** A new key in clear text. */
export const newDeliveryKey = (random?: (bytes: number) => Buffer): string => newBearer(prefix, random)

export const hashDeliveryKey = (key: string): KeyHash => hashBearer(key) as KeyHash

/** The hash of a key as somebody pasted it; null if it is none. */
export const parseDeliveryKey = (text: string): KeyHash | null => hashIfSecret(text.trim(), prefix) as KeyHash | null

/** Reads the delivery key of an `Authorization` header. */
export const parseAuthorization = (header: string | undefined): Presented<KeyHash> =>
  parseBearer(header, prefix) as Presented<KeyHash>

const authHookPrefix = 'psh_'

/** A new secret for an auth server, in clear text. It is a delivery key of another kind. */
export const newAuthHookSecret = (random?: (bytes: number) => Buffer): string => newBearer(authHookPrefix, random)

/** Reads the secret of an auth server from its `Authorization` header. */
export const parseAuthHookAuthorization = (header: string | undefined): Presented<KeyHash> =>
  parseBearer(header, authHookPrefix) as Presented<KeyHash>
