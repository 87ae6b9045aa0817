/** Keys that sign the mail of a domain (DKIM, RFC 6376): their records in DNS name them by selector. */

export const signingAlgorithms = ['rsa', 'ed25519'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/**
 * `pending`: its record is to be published. `active`: it signs; at most one key of an algorithm does.
 * `retired`: another one signs, and mail that is under way still needs its record.
 */
export const signingKeyStates = ['pending', 'active', 'retired'] as const
export type SigningKeyState = (typeof signingKeyStates)[number]

export type SigningKey = {
  readonly domain: string
  readonly selector: string
  readonly algorithm: SigningAlgorithm
  readonly state: SigningKeyState
  /** The `p=` of its record: base64 of the SPKI of an RSA key, or of the 32 bytes of an Ed25519 key. */
  readonly publicKey: string
  readonly createdAt: number
  readonly changedAt: number
}

/** The keys of a domain: pending, active, and retired ones whose records are still published. */
export const signingKeysMax = 10

/**
 * `p202701311405r`, by the minute, or `p202701311405r2` if the first one is taken. One is never used again:
 * resolvers may still have the record of a key that was removed.
 */
export function newSelector(algorithm: SigningAlgorithm, nowMs: number, taken: readonly string[]): string {
  const minute = new Date(nowMs).toISOString().slice(0, 16).replaceAll(/\D/g, '')
  const first = `p${minute}${algorithm === 'rsa' ? 'r' : 'e'}`
  let selector = first
  for (let n = 2; taken.includes(selector); n++) selector = `${first}${n}`
  return selector
}
