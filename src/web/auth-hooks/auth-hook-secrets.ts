/**
 * Caches the secrets of auth servers for a few seconds, including their absence, so that calls without one do
 * not reach the store each time.
 */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { AuthHookName } from '../../domain/auth-hooks/auth-hook-settings.ts'
import { Remembered } from '../../domain/remembered.ts'
import { openAuthHookSecret } from '../../store/crypto/auth-hook-secret.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import type { Store } from '../../store/store.ts'

/** `secret`: by which the server signs; null if it sends its key. */
export type AuthHookSecret = {
  readonly hash: KeyHash
  readonly hook: AuthHookName
  readonly secret: string | null
}

const rememberMs = 5000
/** A call that no remembered secret fits reads again, at most this often. */
const rereadMs = 1000
const secretsKept = 10_000

export class AuthHookSecrets {
  readonly #store: Pick<Store, 'findAppBySlug' | 'listAuthHookSecrets'>
  readonly #ring: KeyRing
  /** Absent ones apart, so that slugs which strangers make up push out no secret. */
  readonly #secrets = new Remembered<readonly AuthHookSecret[]>({
    keepMs: () => rememberMs,
    max: secretsKept,
    isApart: (secrets) => secrets.length === 0,
  })

  constructor(store: Pick<Store, 'findAppBySlug' | 'listAuthHookSecrets'>, ring: KeyRing) {
    this.#store = store
    this.#ring = ring
  }

  /** The first secret of a system, or of any one (null), that fits; null if none does. */
  async find(
    slug: string,
    system: AuthHookName | null,
    fits: (secret: AuthHookSecret) => boolean,
  ): Promise<AuthHookSecret | null> {
    const known = await this.#read(slug, system, rememberMs)
    const found = known.find(fits)
    if (found !== undefined) return found
    const again = await this.#read(slug, system, rereadMs)
    return again === known ? null : (again.find(fits) ?? null)
  }

  forget(slug: string, system: AuthHookName | null): void {
    this.#secrets.forget(nameSecrets(slug, system))
  }

  #read(slug: string, system: AuthHookName | null, freshMs: number): Promise<readonly AuthHookSecret[]> {
    return this.#secrets.get(nameSecrets(slug, system), () => this.#load(slug, system), freshMs)
  }

  /** Slugs that strangers make up are looked up where public pages are, and wait for nobody else. */
  async #load(slug: string, system: AuthHookName | null): Promise<AuthHookSecret[]> {
    const app = await this.#store.findAppBySlug(slug)
    if (app === null || app.status !== 'active') return []
    const secrets: AuthHookSecret[] = []
    for (const { hash, hook, sealed } of await this.#store.listAuthHookSecrets(slug, system)) {
      const secret = sealed === null ? null : openAuthHookSecret(this.#ring, { hash, sealed })
      if (sealed === null || secret !== null) secrets.push({ hash, hook, secret })
    }
    return secrets
  }
}

/** No system is called `*`. */
const nameSecrets = (slug: string, system: AuthHookName | null): string => `${system ?? '*'} ${slug}`
