/**
 * The client: one email per call, with retries within one time budget. Every attempt of a call
 * carries the same idempotency key, so retries never queue a second email.
 */
import { attempt, type EmailPost } from './attempt.ts'
import type { Email, Sender, SendOptions, SendOutcome, Sent } from './email.ts'
import { PosternError } from './postern-error.ts'
import { checkGiven, checkKey, type PosternOptions, readSettings, type Settings } from './settings.ts'

export type { Email, EmailType, Sender, SendOptions, SendOutcome, Sent } from './email.ts'
export { type Issue, PosternError, type PosternErrorCode } from './postern-error.ts'
export type { PosternOptions } from './settings.ts'

/**
 * Sends emails for the app that owns the delivery key. The environment is read at the first call, so
 * that a build can load the module without it; `check` reads it at once.
 */
export class Postern implements Sender {
  readonly #options: PosternOptions
  #settings: Settings | undefined

  /** @throws {PosternError} `invalid_config` if a given option is malformed */
  constructor(options: PosternOptions = {}) {
    checkGiven(options)
    this.#options = options
  }

  /**
   * Call it when your app starts: a missing variable or a mistyped key then stops the start, not the first
   * sign-in. It sends nothing.
   * @throws {PosternError} `invalid_config`; the message names every missing option
   */
  check(): void {
    this.#settings ??= readSettings(this.#options)
    checkKey(this.#settings.deliveryKey)
  }

  /**
   * Queues one email.
   * @throws {PosternError} `code` says why; with no answer the email may be queued
   */
  async send(email: Email, options: SendOptions = {}): Promise<Sent> {
    const outcome = await this.safeSend(email, options)
    if (!outcome.ok) throw outcome.error
    const { ok: _, ...sent } = outcome
    return sent
  }

  /** Like `send`, but returns the error. */
  async safeSend(email: Email, { signal, idempotencyKey }: SendOptions = {}): Promise<SendOutcome> {
    try {
      this.#settings ??= readSettings(this.#options)
      const settings = this.#settings
      return await sendInBudget(settings, newPost(settings, email, idempotencyKey), signal)
    } catch (error) {
      if (error instanceof PosternError) return { ok: false, error }
      throw error
    }
  }
}

function newPost(settings: Settings, email: Email, idempotencyKey = crypto.randomUUID() as string): EmailPost {
  if (!/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw invalid('Idempotency-Key', 'malformed', 'Give an idempotencyKey of 1 to 255 visible ASCII characters.')
  }
  const { to, type, expiresAt, locale } = email
  if (expiresAt instanceof Date && Number.isNaN(expiresAt.getTime())) {
    throw invalid('expiresAt', 'invalid_date', 'expiresAt is a Date without a time.')
  }
  const url = email.url instanceof URL ? email.url.href : email.url
  const more =
    type === 'organisation_invite'
      ? { organisationName: email.organisationName, inviterName: email.inviterName }
      : { code: email.code }
  const secrets = [settings.deliveryKey, url, ...readTokens(url), to, ...('code' in more ? [more.code ?? ''] : [])]
  return {
    body: JSON.stringify({ to, type, url, expiresAt, locale, ...more }),
    idempotencyKey,
    redact: newRedactor(secrets.map(String)),
  }
}

const invalid = (field: string, code: string, message: string) =>
  new PosternError('invalid_body', message, { issues: [{ field, code, message }] })

/** The token as in the link, and decoded. */
function readTokens(url: string): string[] {
  const raw = /[?&]token=([^&#]*)/.exec(url)?.[1] ?? ''
  return [raw, new URLSearchParams(`token=${raw}`).get('token') ?? '']
}

/** `encodeURIComponent` throws on half a surrogate pair; the service names the fault better. */
const wellFormed = (text: string): string => new TextDecoder().decode(new TextEncoder().encode(text))

/** Ignores case; finds percent-encoded too. Skips secrets of up to 3 characters, common in any text. */
function newRedactor(secrets: string[]): (text: string) => string {
  const spelled = secrets.flatMap((secret) => [secret, encodeURIComponent(wellFormed(secret))])
  const parts = spelled.filter((secret) => secret.length > 3).map((secret) => secret.replace(/[^\w]/g, '\\$&'))
  return (text) => (parts.length === 0 ? text : text.replace(new RegExp(parts.join('|'), 'gi'), '[redacted]'))
}

// With less time an attempt would time out and hide the answer already received.
const attemptMsMin = 250

async function sendInBudget(
  settings: Settings,
  post: EmailPost,
  signal: AbortSignal | undefined,
): Promise<SendOutcome> {
  const endsAt = now() + settings.budgetMs
  for (let retry = 0; ; retry++) {
    const outcome = await attempt(settings, post, Math.min(settings.timeoutMs, endsAt - now()), signal)
    if (outcome.ok || retry >= settings.maxRetries) return outcome
    const pauseMs = pauseBefore(retry, outcome.error)
    if (pauseMs === null || now() + pauseMs > endsAt - attemptMsMin) return outcome
    await pause(pauseMs, signal)
  }
}

/** Monotonic if possible. */
const now = (): number => globalThis.performance?.now() ?? Date.now()

/**
 * Milliseconds to wait before the next attempt; null for no retry. `Retry-After` decides; a 429
 * without it is not retried. Otherwise 200, 600 and 1,800 ms, less up to half at random: enough for a
 * restart of the service, and clients do not return all at once.
 */
function pauseBefore(retry: number, { code, status, retryAfterMs }: PosternError): number | null {
  if (code === 'aborted') return null
  if (status !== undefined && status < 500 && status !== 429) return null
  if (retryAfterMs !== undefined) return retryAfterMs
  return status === 429 ? null : 200 * 3 ** retry * (1 - Math.random() / 2)
}

const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
