/** Looks once an hour whether the records of the keys that sign mail are still in DNS. */
import { checkKey } from '../../dns/check-domain.ts'
import { isReservedDomain } from '../../domain/delivery/reserved-domain.ts'
import type { Lookup } from '../../domain/dns/lookup.ts'
import { hourMs } from '../../domain/duration.ts'
import type { SigningKeyStore } from '../../store/signing-key-store.ts'
import type { MissingRecord } from '../context.ts'

type WatchParts = {
  readonly store: Pick<SigningKeyStore, 'listSigningKeys'>
  readonly newLookup: () => Lookup
  /** A monotonic clock. */
  readonly nowMs?: () => number
}

/** The domains that are looked up: others have to be checked by hand. */
const domainsMax = 40

export class RecordWatch {
  readonly #parts: WatchParts
  readonly #nowMs: () => number
  #missing: readonly MissingRecord[] = []
  #dueMs = Number.NEGATIVE_INFINITY

  constructor(parts: WatchParts) {
    this.#parts = parts
    this.#nowMs = parts.nowMs ?? (() => performance.now())
  }

  /** The records that were missing at the last look. Begins another one when that is due; never waits. */
  get(): readonly MissingRecord[] {
    if (this.#nowMs() >= this.#dueMs) void this.look().catch(() => {}) // the store does not answer: look later
    return this.#missing
  }

  async look(): Promise<void> {
    this.#dueMs = this.#nowMs() + hourMs
    const { newLookup, store } = this.#parts
    const keys = (await store.listSigningKeys(null)).filter(
      ({ domain, state }) => state === 'active' && !isReservedDomain(domain),
    )
    const byDomain = Map.groupBy(keys, ({ domain }) => domain)
    const lines = await Promise.all(
      [...byDomain.values()].slice(0, domainsMax).flatMap((own) => {
        const lookup = newLookup() // its bounds are for one domain
        return own.map(async (key) => ({ key, line: await checkKey(key.domain, key, lookup) }))
      }),
    )
    this.#missing = lines
      .filter(({ line }) => line.result === 'fail')
      .map(({ key: { domain, selector }, line: { message } }) => ({ domain, selector, message }))
  }
}
