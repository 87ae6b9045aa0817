/**
 * The proof that a domain reaches this service: a text that only a holder of the key ring can make, for a
 * nonce that the checking process has chosen and for the domain that the request named.
 */
import { randomBytes } from 'node:crypto'
import { type KeyRing, openText, sealText } from './key-ring.ts'

export const newNonce = (): string => randomBytes(16).toString('base64url')
export const isNonce = (text: string): boolean => /^[\w-]{22}$/.test(text)

/** Where the links listener answers with a proof. No app has a slug that begins with a dot. */
export const proofPath = (nonce: string): string => `/.well-known/postern/${nonce}`

const toContext = (domain: string, nonce: string): string => `link domain ${domain} ${nonce}`

export const makeReachProof = (ring: KeyRing, domain: string, nonce: string): string =>
  sealText(ring, toContext(domain, nonce), '')

export const isReachProof = (ring: KeyRing, domain: string, nonce: string, proof: string): boolean =>
  openText(ring, toContext(domain, nonce), proof) !== null
