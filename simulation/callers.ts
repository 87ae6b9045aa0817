/**
 * The apps: they ask for emails, alone and in bursts, repeat what was not answered, and sometimes make
 * mistakes.
 */
import type { App } from '../src/domain/app/app.ts'
import { hourMs } from '../src/domain/duration.ts'
import { emailTypes } from '../src/domain/request/email-kinds.ts'
import type { Asked, Ledger } from './ledger.ts'
import type { PosternProcess } from './process.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

/** An app with a key, which is replaced when it is rotated; and the one that was revoked last. */
export type Sender = { readonly app: App; key: string; keyId: string; revokedKey?: string }

/** One has low limits, and one is deleted now and then and made anew. */
export type Senders = Record<'quiet' | 'limited' | 'doomed' | 'busy', Sender>

const livesMs = [20_000, 60_000, 300_000, 900_000, 3_600_000]
const waitMs = 10_000
const triesMax = 4
/** All tries of a request have ended by then. */
const againMs = 60_000
const rememberedMs = 22 * hourMs

export class Callers {
  readonly #world: World
  readonly #ledger: Ledger
  readonly #processes: readonly PosternProcess[]
  readonly #random: Random
  #serial = 0
  /** Some requests that are repeated hours later, and when they were sent, on the wall clock. */
  readonly #old: { readonly asked: Asked; readonly atMs: number }[] = []
  #open = 0

  constructor(world: World, ledger: Ledger, processes: readonly PosternProcess[]) {
    this.#world = world
    this.#ledger = ledger
    this.#processes = processes
    this.#random = world.random('callers')
  }

  /** Whether all requests have been answered or given up. */
  get isIdle(): boolean {
    return this.#open === 0
  }

  /** @param before an email that the same person has asked for, and asks for once more */
  ask(sender: Sender, before?: Pick<Asked, 'to' | 'type'>): void {
    const random = this.#random
    const n = this.#serial++
    const { app, revokedKey } = sender
    const key = revokedKey !== undefined && random.chance(0.1) ? revokedKey : sender.key
    const isAlone = before === undefined && random.chance(0.1)
    const local = isAlone ? `alone${n}` : random.chance(0.02) ? `gone${n}` : `user${this.#pickUser(sender, n)}`
    const asked: Asked = {
      app: app.slug,
      to: `${local}@${app.slug}.test`,
      type: random.pick(emailTypes),
      ...before,
      token: this.#newToken(n),
      locale: random.chance(0.2) ? random.pick(['de', 'fr', 'ja', 'ar']) : null,
      key,
      idempotencyKey: isAlone ? null : `k${n}`,
      expiresAt: this.#world.wallMs() + random.pick(livesMs),
      isReused: false,
    }
    this.#try(asked, isAlone ? triesMax : 1)
    if (isAlone) return
    if (random.chance(0.1))
      this.#later(random.skewed(2000, 30_000), () => this.ask(sender, { to: asked.to, type: asked.type }))
    // The same request at the same time, or again after its link may have expired; or another one with its
    // key.
    if (random.chance(0.05)) this.#try(asked, 1)
    if (random.chance(0.02)) this.#old.push({ asked, atMs: this.#world.wallMs() })
    const later = random.next()
    if (later < 0.03) this.#later(againMs, () => this.#try(asked, triesMax))
    else if (later < 0.06) {
      const other = { ...asked, token: this.#newToken(n), isReused: true }
      this.#later(againMs, () => this.#try(other, triesMax))
    }
  }

  /** Idempotency keys are remembered for a day. */
  askAgain(): void {
    for (const { asked, atMs } of this.#old.splice(0)) {
      const ageMs = this.#world.wallMs() - atMs
      if (ageMs > 0 && ageMs < rememberedMs && this.#ledger.isRemembered(asked)) this.#try(asked, 1)
    }
  }

  #pickUser({ app }: Sender, n: number): number {
    if (app.slug === 'quiet') return n
    return this.#random.below(app.slug === 'limited' ? 30 : 300)
  }

  #newToken = (n: number): string => `secret${this.#random.bits()}x${n}`

  #later(ms: number, run: () => void): void {
    this.#open += 1
    this.#world.after(ms, () => {
      this.#open -= 1
      run()
    })
  }

  /** A request that is not answered within a while, or is answered with 503, is repeated with its key. */
  #try(asked: Asked, attempt: number): void {
    this.#open += 1
    const world = this.#world
    const again = () => {
      if (attempt < triesMax) this.#later(this.#random.skewed(200, 4000), () => this.#try(asked, attempt + 1))
      else this.#ledger.count('unanswered')
    }
    let isOver = false
    const late = world.after(waitMs, () => {
      isOver = true
      this.#open -= 1
      again()
    })
    const process = this.#random.pick(this.#processes)
    const askedAtMs = world.nowMs
    this.#ledger.asked(asked)
    const incoming = {
      authorization: `Bearer ${asked.key}`,
      idempotencyKey: asked.idempotencyKey ?? undefined,
      address: () => '127.0.0.1',
      body: { contentType: 'application/json', contentEncoding: undefined, bytes: Buffer.from(write(asked)) },
    }
    process.request(incoming, (answer) => {
      this.#ledger.answered(asked, answer, askedAtMs)
      if (isOver) return
      isOver = true
      late.isCancelled = true
      this.#open -= 1
      if ('rejection' in answer && answer.rejection.code === 'queue_unavailable') again()
    })
  }
}

const write = ({ expiresAt, locale, to, token, type }: Asked): string =>
  JSON.stringify({
    to,
    type,
    url: `https://app.acme.test/auth?token=${token}`,
    expiresAt: new Date(expiresAt).toISOString(),
    ...(type === 'organisation_invite' && { organisationName: 'Acme', inviterName: 'Ada' }),
    ...(locale !== null && { locale }),
  })
