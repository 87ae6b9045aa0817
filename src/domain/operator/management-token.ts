/**
 * Management tokens: the bearer secrets (`domain/bearer.ts`) with the prefix `psa_`. A token has one role,
 * for the whole service or for some apps.
 */
import { hashBearer, newBearer, type Presented, parseBearer } from '../bearer.ts'

declare const brand: unique symbol
/** SHA-256 of a management token, base64url. */
export type TokenHash = string & { readonly [brand]: 'TokenHash' }

const prefix = 'psa_'

/** A new token in clear text. */
export const newToken = (random?: (bytes: number) => Buffer): string => newBearer(prefix, random)

export const hashToken = (token: string): TokenHash => hashBearer(token) as TokenHash

/** Reads the management token of an `Authorization` header. */
export const parseTokenHeader = (header: string | undefined): Presented<TokenHash> =>
  parseBearer(header, prefix) as Presented<TokenHash>

/** From the least to the most: each role may do what those before it may. */
export const roles = ['reader', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

export const isAtLeast = (role: Role, least: Role): boolean => roles.indexOf(role) >= roles.indexOf(least)
