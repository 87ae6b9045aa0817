/** Private keys that sign mail: PKCS #8, sealed for their domain and selector. */
import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { SigningAlgorithm } from '../../domain/delivery/signing-key.ts'
import type { NewSigningKey, SigningKeyRecord, SigningKeyStore } from '../signing-key-store.ts'
import { type KeyRing, resealAll, sealText, unseal } from './key-ring.ts'

type Named = Pick<SigningKeyRecord, 'domain' | 'selector'>
type Sealed = Named & Pick<SigningKeyRecord, 'sealed'>

const toContext = ({ domain, selector }: Named): string => `dkim ${domain} ${selector}`

/** RFC 8301 asks for 1024 at least; 2048 is the most that all verifiers take. */
const rsaBits = 2048

/** Makes a key pair, in the thread pool: an RSA pair takes 0.1 to 0.3 s. */
export async function makeSigningKey(
  ring: KeyRing,
  { algorithm, domain, selector }: Named & { readonly algorithm: SigningAlgorithm },
): Promise<NewSigningKey> {
  const { privateKey, publicKey } = await makeKeyPair(algorithm)
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  // The SPKI of an Ed25519 key ends with its 32 bytes, which alone are in the record (RFC 8463).
  const shown = algorithm === 'rsa' ? spki : spki.subarray(-32)
  const sealed = sealText(ring, toContext({ domain, selector }), pem)
  return { domain, selector, algorithm, publicKey: shown.toString('base64'), sealed }
}

const generate = promisify(generateKeyPair)

const makeKeyPair = (
  algorithm: SigningAlgorithm,
): Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }> =>
  algorithm === 'rsa' ? generate('rsa', { modulusLength: rsaBits }) : generate('ed25519')

/** @throws {KeyMissing} if the ring lacks the key that sealed it; another error if it was altered */
export const openSigningKey = (ring: KeyRing, { sealed, ...named }: Sealed): KeyObject =>
  createPrivateKey(unseal(ring, toContext(named), Buffer.from(sealed, 'base64url')))

/** Returns those that the ring cannot open. */
export const resealSigningKeys = async (
  ring: KeyRing,
  store: Pick<SigningKeyStore, 'listSigningKeys' | 'resealSigningKey'>,
): Promise<readonly SigningKeyRecord[]> =>
  resealAll(ring, await store.listSigningKeys(null), {
    context: toContext,
    write: (key, sealed) => store.resealSigningKey(key, sealed),
  })
