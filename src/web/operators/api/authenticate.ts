/** Reads the token of a request to the management API. Cookies are ignored. */
import { hasEnded } from '../../../domain/bearer.ts'
import { lastUseEveryMs } from '../../../domain/bounds.ts'
import type { TokenId } from '../../../domain/id.ts'
import { LruMap } from '../../../domain/lru-map.ts'
import { parseTokenHeader } from '../../../domain/operator/management-token.ts'
import type { Access } from '../../../management/operation/access.ts'
import { done, fail, type Result } from '../../../management/operation/result.ts'
import type { Store } from '../../../store/store.ts'

const messages = {
  missing: 'No management token: send the header "Authorization: Bearer psa_…".',
  mistyped: 'The management token is mistyped or cut short: copy it whole, psa_ and 49 characters.',
  other: 'This is a delivery key, which sends emails. Operations need a management token (psa_…).',
  unknown:
    'The management token is unknown here, revoked or expired. "postern token list" on the server shows the tokens.',
}

const notedMax = 10_000

export class Authenticator {
  readonly #store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>
  readonly #notedMs = new LruMap<TokenId, number>(notedMax)

  constructor(store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>) {
    this.#store = store
  }

  /**
   * The access that the token of the header gives. The token is looked up for each request, so a revoked one
   * ends at once.
   */
  async authenticate(header: string | undefined, requestId: string): Promise<Result<Access>> {
    const presented = parseTokenHeader(header)
    if (presented.kind !== 'secret') return fail('invalid_token', messages[presented.kind])
    const token = await this.#store.findTokenByHash(presented.hash)
    const ended = token === null || hasEnded(token, this.#store.now())
    if (ended) return fail('invalid_token', messages.unknown)
    this.#noteUse(token.id)
    const { id, name, role, apps, expiresAt } = token
    const actor = { kind: 'token', id, name, via: 'api', requestId } as const
    return done({ actor, role, apps: apps && new Set(apps), expiresAt, signedInAt: null })
  }

  /** Best effort: a request does not wait for it, and does not fail with it. */
  #noteUse(id: TokenId): void {
    const nowMs = performance.now()
    if (nowMs - (this.#notedMs.get(id) ?? Number.NEGATIVE_INFINITY) < lastUseEveryMs) return
    this.#notedMs.set(id, nowMs)
    void this.#store.noteTokenUse(id).catch(() => {})
  }
}
