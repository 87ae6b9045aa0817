/**
 * How people sign in to the console: by a one-time code, which a link carries in its fragment, by a passkey
 * or by OpenID Connect. A session is a bearer secret in a cookie. Only the hashes of codes and sessions are
 * stored.
 */

import { hashBearer, hashIfSecret, newBearer } from '../bearer.ts'
import { dayMs, hourMs, minuteMs } from '../duration.ts'

declare const brand: unique symbol
/** SHA-256 of a sign-in code, base64url. */
export type SignInHash = string & { readonly [brand]: 'SignInHash' }
/** SHA-256 of the secret of a session, base64url. */
export type SessionHash = string & { readonly [brand]: 'SessionHash' }

const codePrefix = 'psl_'
const sessionPrefix = 'pss_'

/** A new sign-in code in clear text. */
export const newSignInCode = (): string => newBearer(codePrefix)
export const hashSignInCode = (code: string): SignInHash => hashBearer(code) as SignInHash
/** The hash of a code as somebody entered it; null if it is none. */
export const parseSignInCode = (text: string): SignInHash | null =>
  hashIfSecret(text.trim(), codePrefix) as SignInHash | null

export const newSessionSecret = (): string => newBearer(sessionPrefix)
export const hashSessionSecret = (secret: string): SessionHash => hashBearer(secret) as SessionHash
export const parseSessionSecret = (text: string): SessionHash | null =>
  hashIfSecret(text, sessionPrefix) as SessionHash | null

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
