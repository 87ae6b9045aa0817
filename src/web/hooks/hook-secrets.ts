/**
 * Caches the secrets of auth servers for a few seconds, including their absence, so that calls without one do
 * not reach the store each time.
 */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { HookSystemName } from '../../domain/hooks/hook-settings.ts'
import { Remembered } from '../../domain/remembered.ts'
import { openHookSecret } from '../../store/crypto/hook-secret.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import type { Store } from '../../store/store.ts'

/** `secret`: by which the server signs; null if it sends its key. */
export type HookSecret = { readonly hash: KeyHash; readonly secret: string | null }

const rememberMs = 5000
/** A call that no remembered secret fits reads again, at most this often. */
const rereadMs = 1000
const secretsKept = 10_000

export class HookSecrets {
  readonly #store: Pick<Store, 'findAppBySlug' | 'listHookSecrets'>
  readonly #ring: KeyRing
  /** Absent ones apart, so that slugs which strangers make up push out no secret. */
  readonly #secrets = new Remembered<readonly HookSecret[]>({
    keepMs: () => rememberMs,
    max: secretsKept,
    isApart: (secrets) => secrets.length === 0,
  })

  constructor(store: Pick<Store, 'findAppBySlug' | 'listHookSecrets'>, ring: KeyRing) {
    this.#store = store
    this.#ring = ring
  }

  /** The first secret that fits; null if none does. */
  async find(slug: string, system: HookSystemName, fits: (secret: HookSecret) => boolean): Promise<HookSecret | null> {
    const known = await this.#read(slug, system, rememberMs)
    const found = known.find(fits)
    if (found !== undefined) return found
    const again = await this.#read(slug, system, rereadMs)
    return again === known ? null : (again.find(fits) ?? null)
  }

  forget(slug: string, system: HookSystemName): void {
    this.#secrets.forget(`${system} ${slug}`)
  }

  #read(slug: string, system: HookSystemName, freshMs: number): Promise<readonly HookSecret[]> {
    return this.#secrets.get(`${system} ${slug}`, () => this.#load(slug, system), freshMs)
  }

  /** Slugs that strangers make up are looked up where public pages are, and wait for nobody else. */
  async #load(slug: string, system: HookSystemName): Promise<HookSecret[]> {
    const app = await this.#store.findAppBySlug(slug)
    if (app === null || app.status !== 'active') return []
    const secrets: HookSecret[] = []
    for (const { hash, sealed } of await this.#store.listHookSecrets(slug, system)) {
      const secret = sealed === null ? null : openHookSecret(this.#ring, { hash, sealed })
      if (sealed === null || secret !== null) secrets.push({ hash, secret })
    }
    return secrets
  }
}
