/**
 * Management tokens: the bearer secrets (`domain/bearer.ts`) with the prefix `psa_`. A token has one role,
 * for the whole service or for some apps.
 */
import { bearers } from '../bearer.ts'

declare const brand: unique symbol
/** SHA-256 of a management token, base64url. */
export type TokenHash = string & { readonly [brand]: 'TokenHash' }

export const { create: newToken, hash: hashToken, parseHeader: parseTokenHeader } = bearers<TokenHash>('psa_')

/** From the least to the most: each role may do what those before it may. */
export const roles = ['reader', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

export const isAtLeast = (role: Role, least: Role): boolean => roles.indexOf(role) >= roles.indexOf(least)
