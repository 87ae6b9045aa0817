/**
 * How people sign in to the console: by a one-time code, which a link carries in its fragment, by a passkey
 * or by OpenID Connect. A session is a bearer secret in a cookie. Only the hashes of codes and sessions are
 * stored.
 */

import { bearers } from '../bearer.ts'
import { dayMs, hourMs, minuteMs } from '../duration.ts'

declare const brand: unique symbol
/** SHA-256 of a sign-in code, base64url. */
export type SignInHash = string & { readonly [brand]: 'SignInHash' }
/** SHA-256 of the secret of a session, base64url. */
export type SessionHash = string & { readonly [brand]: 'SessionHash' }

export const { create: newSignInCode, hash: hashSignInCode, parse: parseSignInCode } = bearers<SignInHash>('psl_')
export const {
  create: newSessionSecret,
  hash: hashSessionSecret,
  parse: parseSessionSecret,
} = bearers<SessionHash>('pss_')

/** How long a code of the command line, and one of an invitation, can be used. */
export const signInCodeMs = 10 * minuteMs
export const invitationMs = 72 * hourMs
/** A session ends when it has not been used for this long, and at the latest after `sessionMaxMs`. */
export const sessionIdleMs = 12 * hourMs
export const sessionMaxMs = 7 * dayMs

/** For this long after signing in, a session may make an access that outlives it. */
export const freshMs = hourMs
export const isFreshSignIn = (signedInAt: number, nowMs: number): boolean => nowMs - signedInAt <= freshMs

export const signInMethods = ['code', 'passkey', 'oidc'] as const
export type SignInMethod = (typeof signInMethods)[number]

export const isSessionAlive = (
  { seenAt, expiresAt }: { readonly seenAt: number; readonly expiresAt: number },
  nowMs: number,
): boolean => nowMs < expiresAt && nowMs < seenAt + sessionIdleMs
