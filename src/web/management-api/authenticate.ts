/** Reads the token of a request to the management API, and keeps each token to its rate. Cookies are ignored. */
import { chargeLimit, type Limit } from '../../domain/app/limit.ts'
import type { TokenId } from '../../domain/id.ts'
import { LruMap } from '../../domain/lru-map.ts'
import { parseTokenHeader } from '../../domain/management-token.ts'
import type { Access } from '../../management/access.ts'
import type { OperationName } from '../../management/operations.ts'
import { done, type Result, refuse } from '../../management/result.ts'
import { lastUseEveryMs } from '../../store/shared/bounds.ts'
import type { Store } from '../../store/store.ts'

const messages = {
  missing: 'No management token: send the header "Authorization: Bearer psa_…".',
  mistyped: 'The management token is mistyped or cut short: copy it whole, psa_ and 49 characters.',
  other: 'This is a delivery key, which sends emails. Operations need a management token (psa_…).',
  unknown:
    'The management token is unknown here, revoked or expired. "postern token list" on the server shows the tokens.',
}

/** 600 a minute, of which 30 at once: answering operations must not take the time of requests for emails. */
const requests: Limit = { quota: 30, windowUs: 3e6 }
/** Searches by address are what a stolen token would be used for. */
const searches: Limit = { quota: 60, windowUs: 60e6 }
const bucketsMax = 10_000

export class Authenticator {
  readonly #store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>
  readonly #arrivals = new LruMap<string, number>(bucketsMax)
  readonly #notedMs = new LruMap<TokenId, number>(bucketsMax)

  constructor(store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>) {
    this.#store = store
  }

  /** The access that the token of the header gives. The token is looked up for each request, so a revoked one ends at once. */
  async authenticate(header: string | undefined, requestId: string): Promise<Result<Access>> {
    const presented = parseTokenHeader(header)
    if (presented.kind !== 'secret') return refuse('invalid_token', messages[presented.kind])
    const token = await this.#store.findTokenByHash(presented.hash)
    const ended = token === null || token.revokedAt !== null || token.expiresAt <= this.#store.now()
    if (ended) return refuse('invalid_token', messages.unknown)
    this.#noteUse(token.id)
    const { id, name, role, apps, expiresAt } = token
    const actor = { kind: 'token', id, name, via: 'api', requestId } as const
    return done({ actor, role, apps: apps && new Set(apps), expiresAt })
  }

  /** Charges one request to a token. */
  admit(access: Access, operation: OperationName): Result<null> {
    const { id } = access.actor
    const isSearch = operation === 'email.find'
    const refused =
      this.#charge(`${id}`, requests) ?? (isSearch ? this.#charge(`${id} search`, searches) : null)
    return refused ?? done(null)
  }

  #charge(bucket: string, limit: Limit): Result<never> | null {
    const nowUs = Math.floor(performance.now() * 1000)
    const charge = chargeLimit(limit, this.#arrivals.get(bucket) ?? 0, nowUs)
    if (charge.ok) {
      this.#arrivals.set(bucket, charge.arrivalUs)
      return null
    }
    const retryAfterS = Math.ceil(charge.retryAfterUs / 1e6)
    const perMinute = (limit.quota * 60e6) / limit.windowUs
    const message = `Too many requests with this token: at most ${perMinute} a minute. Try again in ${retryAfterS} s.`
    return { ok: false, refusal: { code: 'too_many_requests', message, retryAfterS } }
  }

  /** Best effort: a request does not wait for it, and does not fail with it. */
  #noteUse(id: TokenId): void {
    const nowMs = performance.now()
    if (nowMs - (this.#notedMs.get(id) ?? Number.NEGATIVE_INFINITY) < lastUseEveryMs) return
    this.#notedMs.set(id, nowMs)
    void this.#store.noteTokenUse(id).catch(() => {})
  }
}
