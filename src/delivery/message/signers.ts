/** Finds the keys that sign the mail of a domain. */
import type { KeyObject } from 'node:crypto'
import { Remembered } from '../../domain/remembered.ts'
import type { Emit } from '../../observe/events.ts'
import type { SigningKeyRecord } from '../../store/signing-key-store.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import type { Signer } from './sign-message.ts'

/**
 * `signers`: empty for a domain whose mail is not signed. `held`: why the mail waits; unsigned, it would be
 * rejected.
 */
export type FoundSigners = { readonly signers: readonly Signer[] } | { readonly held: string; readonly waitMs: number }

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
  readonly #found: Remembered<FoundSigners>

  constructor(deps: SignersDeps) {
    this.#deps = deps
    const { nowMs: now } = deps
    this.#found = new Remembered({ keepMs: () => signersKeptMs, max: domainsKept, ...(now && { now }) })
  }

  /** At once while the keys of the domain are known. */
  find(domain: string): FoundSigners | Promise<FoundSigners> {
    return this.#found.peek(domain) ?? this.#read(domain)
  }

  async #read(domain: string): Promise<FoundSigners> {
    try {
      return await this.#found.get(domain, async () => this.#open(await this.#deps.store.findSigningKeys(domain)))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      const held = { held: 'the store does not answer', waitMs: unavailableWaitMs }
      return this.#found.last(domain) ?? held
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
