/** The record by which receivers verify signatures (RFC 6376, section 3.6.1; RFC 8463). */
import type { SigningAlgorithm } from '../delivery/signing-key.ts'

export const findDkimName = (selector: string, domain: string): string => `${selector}._domainkey.${domain}`

/** @param publicKey base64: of the SPKI for rsa, of the 32 bytes for ed25519 */
export const formatDkimRecord = (algorithm: SigningAlgorithm, publicKey: string): string =>
  `v=DKIM1; k=${algorithm}; p=${publicKey}`

/** As a zone file has it: strings of at most 255 characters. */
export const quoteRecord = (text: string): string =>
  (text.match(/.{1,255}/g) ?? []).map((part) => `"${part}"`).join(' ')
