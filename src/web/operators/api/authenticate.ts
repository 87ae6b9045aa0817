/** Reads the token of a request to the management API. Cookies are ignored. */
import { hasEnded } from '../../../domain/bearer.ts'
import type { TokenId } from '../../../domain/id.ts'
import { parseTokenHeader } from '../../../domain/operator/management-token.ts'
import type { Access } from '../../../management/operation/access.ts'
import { done, fail, type Result } from '../../../management/operation/result.ts'
import type { Store } from '../../../store/store.ts'
import { LastUses } from '../last-uses.ts'

const messages = {
  missing: 'No management token: send the header "Authorization: Bearer psa_…".',
  mistyped: 'The management token is mistyped or cut short: copy it whole, psa_ and 49 characters.',
  other: 'This is a delivery key, which sends emails. Operations need a management token (psa_…).',
  unknown:
    'The management token is unknown here, revoked or expired. "postern token list" on the server shows the tokens.',
}

export class Authenticator {
  readonly #store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>
  readonly #uses: LastUses<TokenId>

  constructor(store: Pick<Store, 'findTokenByHash' | 'noteTokenUse' | 'now'>) {
    this.#store = store
    this.#uses = new LastUses({ note: (id) => store.noteTokenUse(id), now: () => store.now() })
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
    const { id, name, role, apps, expiresAt, lastUsedAt } = token
    this.#uses.note(id, lastUsedAt)
    const actor = { kind: 'token', id, name, via: 'api', requestId, ofService: apps === null } as const
    return done({ actor, role, apps: apps && new Set(apps), expiresAt, signedInAt: null })
  }
}
