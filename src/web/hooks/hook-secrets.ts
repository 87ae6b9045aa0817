/**
 * The secrets of auth servers, remembered for some seconds, also that there are none: strangers may call, and
 * must not reach the store each time.
 */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { HookSystemName } from '../../domain/hooks/hook-settings.ts'
import { LruMap } from '../../domain/lru-map.ts'
import { openHookSecret } from '../../store/crypto/hook-secret.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import type { Store } from '../../store/store.ts'

/** `secret`: by which the server signs; null if it sends its key. */
export type HookSecret = { readonly hash: KeyHash; readonly secret: string | null }

type Remembered = { readonly secrets: Promise<readonly HookSecret[]>; readonly readAtMs: number }

const rememberMs = 5000
/** A call that no remembered secret fits reads again, at most this often. */
const rereadMs = 1000
const secretsKept = 10_000

export class HookSecrets {
  readonly #store: Pick<Store, 'findAppBySlug' | 'listHookSecrets'>
  readonly #ring: KeyRing
  readonly #known = new LruMap<string, Remembered>(secretsKept)
  /** Apart from the others, so that slugs which strangers make up push out no secret. */
  readonly #none = new LruMap<string, Remembered>(secretsKept)

  constructor(store: Pick<Store, 'findAppBySlug' | 'listHookSecrets'>, ring: KeyRing) {
    this.#store = store
    this.#ring = ring
  }

  /** The first secret that fits; null if none does. */
  async find(
    slug: string,
    system: HookSystemName,
    fits: (secret: HookSecret) => boolean,
  ): Promise<HookSecret | null> {
    const known = await this.#read(slug, system, rememberMs)
    const found = known.find(fits)
    if (found !== undefined) return found
    const again = await this.#read(slug, system, rereadMs)
    return again === known ? null : (again.find(fits) ?? null)
  }

  forget(slug: string, system: HookSystemName): void {
    this.#known.delete(`${system} ${slug}`)
    this.#none.delete(`${system} ${slug}`)
  }

  /** Calls at the same time share a read. */
  #read(slug: string, system: HookSystemName, freshMs: number): Promise<readonly HookSecret[]> {
    const name = `${system} ${slug}`
    const known = this.#known.get(name) ?? this.#none.get(name)
    const nowMs = performance.now()
    if (known !== undefined && known.readAtMs > nowMs - freshMs) return known.secrets
    const read = { secrets: this.#load(slug, system), readAtMs: nowMs }
    // Calls that come while it is read share it, whichever map keeps the name.
    const kept = this.#known.get(name) === undefined ? this.#none : this.#known
    kept.set(name, read)
    const forget = () => {
      if (kept.get(name) === read) kept.delete(name)
    }
    read.secrets.then((secrets) => {
      forget()
      const wanted = secrets.length === 0 ? this.#none : this.#known
      wanted.set(name, read)
    }, forget)
    return read.secrets
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
