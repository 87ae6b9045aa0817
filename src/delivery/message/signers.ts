/** Finds the keys that sign the mail of a domain. */
import type { KeyObject } from 'node:crypto'
import { LruMap } from '../../domain/lru-map.ts'
import type { Emit } from '../../observe/events.ts'
import type { SigningKeyRecord } from '../../store/signing-key-store.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import type { Signer } from './sign-message.ts'

/**
 * `signers`: empty for a domain whose mail is not signed. `held`: its mail must wait, because it would be
 * refused without a signature.
 */
export type FoundSigners =
  | { readonly signers: readonly Signer[] }
  | { readonly held: string; readonly waitMs: number }

type Entry = { readonly found: FoundSigners; readonly readAtMs: number }

type SignersDeps = {
  readonly store: Pick<Store, 'findSigningKeys'>
  /** Throws if the key ring cannot open the key. */
  readonly open: (key: SigningKeyRecord) => KeyObject
  readonly emit: Emit
  /** A monotonic clock. */
  readonly nowMs?: () => number
}

/** A key that an operator activates signs within this time, and one that was retired signs no longer. */
const signersKeptMs = 30_000

const domainsKept = 10_000
/** An operator has to add a key to the ring. */
const closedWaitMs = 5 * 60_000
const unavailableWaitMs = 1000

export class Signers {
  readonly #deps: SignersDeps
  readonly #nowMs: () => number
  readonly #entries = new LruMap<string, Entry>(domainsKept)
  readonly #reading = new Map<string, Promise<FoundSigners>>()

  constructor(deps: SignersDeps) {
    this.#deps = deps
    this.#nowMs = deps.nowMs ?? (() => performance.now())
  }

  /** At once while the keys of the domain are known. */
  find(domain: string): FoundSigners | Promise<FoundSigners> {
    const known = this.#entries.get(domain)
    if (known !== undefined && this.#nowMs() - known.readAtMs < signersKeptMs) return known.found
    const reading = this.#reading.get(domain) ?? this.#read(domain, known)
    this.#reading.set(domain, reading)
    return reading
  }

  async #read(domain: string, known: Entry | undefined): Promise<FoundSigners> {
    const readAtMs = this.#nowMs()
    try {
      const found = this.#open(await this.#deps.store.findSigningKeys(domain))
      this.#entries.set(domain, { found, readAtMs })
      return found
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return known?.found ?? { held: 'the store does not answer', waitMs: unavailableWaitMs }
    } finally {
      this.#reading.delete(domain)
    }
  }

  #open(keys: readonly SigningKeyRecord[]): FoundSigners {
    const signers: Signer[] = []
    for (const record of keys) {
      const { algorithm, domain, selector } = record
      try {
        signers.push({ algorithm, domain, selector, key: this.#deps.open(record) })
      } catch {
        this.#deps.emit({ kind: 'signing_key_closed', domain, selector })
        const held = `the key ring cannot open the signing key ${selector} of ${domain}`
        return { held, waitMs: closedWaitMs }
      }
    }
    return { signers }
  }
}
