/** Delivery keys: the bearer secrets with the prefix `pst_`, which apps send with their requests. */
import { bearers } from '../bearer.ts'

declare const brand: unique symbol
/** SHA-256 of a delivery key, base64url. */
export type KeyHash = string & { readonly [brand]: 'KeyHash' }

export const {
  create: newDeliveryKey,
  hash: hashDeliveryKey,
  parse: parseDeliveryKey,
  parseHeader: parseAuthorization,
} = bearers<KeyHash>('pst_')

/** The secret of an auth server is a delivery key of another kind. */
export const {
  create: newAuthHookSecret,
  parse: parseAuthHookSecret,
  parseHeader: parseAuthHookAuthorization,
} = bearers<KeyHash>('psh_')
