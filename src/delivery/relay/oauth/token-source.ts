/**
 * The access token of one relay's account: asked for once however many sessions wait for it, kept in memory
 * until shortly before it ends, and renewed before that while the old one still serves.
 */

/** An access token as a server granted it. */
export type GrantedToken = { readonly text: string; readonly expiresInSeconds: number }

/** Why there is no token. Its message is fit for records: it names no secret. */
export class TokenFault extends Error {
  override name = 'TokenFault'
  /** Another request cannot succeed until an operator acts. */
  readonly lasting: boolean
  /** The server asks to be left alone for so long. */
  readonly retryAfterMs: number | null

  constructor(
    message: string,
    { lasting, retryAfterMs = null }: { readonly lasting: boolean; readonly retryAfterMs?: number | null },
  ) {
    super(`no token: ${message}`)
    this.lasting = lasting
    this.retryAfterMs = retryAfterMs
  }
}

export type AccessToken = {
  readonly text: string
  /** It is not fresh, so its server may have taken it back meanwhile. */
  readonly isKept: boolean
}

/** From this share of its life on, a token is renewed beside its use. */
const renewShare = 0.8
/** With less left, a session waits for the next token. */
const leftMinMs = 60_000
const retryMs = 30_000

type Kept = { readonly text: string; readonly grantedMs: number; readonly endsMs: number }

export class TokenSource {
  readonly #grant: () => Promise<GrantedToken>
  readonly #now: () => number
  #kept: Kept | null = null
  #asking: Promise<Kept> | null = null
  #renewFromMs = Number.NEGATIVE_INFINITY

  /**
   * @param grant asks the server for a token, or throws `TokenFault`
   * @param now in milliseconds, monotonic: a wrong clock harms no token
   */
  constructor(grant: () => Promise<GrantedToken>, now = () => performance.now()) {
    this.#grant = grant
    this.#now = now
  }

  /**
   * A token that is valid now.
   * @throws {TokenFault} if there is none, or not before `signal`
   */
  get(signal: AbortSignal): Promise<AccessToken> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(new TokenFault('none in time', { lasting: false }))
      if (signal.aborted) giveUp()
      signal.addEventListener('abort', giveUp)
      void this.#get()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', giveUp))
    })
  }

  async #get(): Promise<AccessToken> {
    const kept = this.#kept
    const now = this.#now()
    if (kept === null || kept.endsMs <= now) return { text: (await this.#ask()).text, isKept: false }
    if (kept.endsMs - now < leftMinMs) {
      const next = await this.#ask().catch(() => kept) // it is still valid
      return { text: next.text, isKept: next === kept }
    }
    const isOld = now >= kept.grantedMs + renewShare * (kept.endsMs - kept.grantedMs)
    if (isOld && now >= this.#renewFromMs) {
      this.#renewFromMs = now + retryMs
      this.#ask().catch(() => {}) // this one still serves
    }
    return { text: kept.text, isKept: true }
  }

  /** The relay refused this token. */
  forget(text: string): void {
    if (this.#kept?.text === text) this.#kept = null
  }

  /** Milliseconds until the token ends; null if there is none. */
  get leftMs(): number | null {
    return this.#kept === null ? null : Math.max(0, this.#kept.endsMs - this.#now())
  }

  #ask(): Promise<Kept> {
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #askNow(): Promise<Kept> {
    const beganMs = this.#now()
    const { text, expiresInSeconds } = await this.#grant()
    this.#kept = { text, grantedMs: beganMs, endsMs: beganMs + expiresInSeconds * 1000 }
    return this.#kept
  }
}
