/**
 * The options of a client, read and checked once, before anything is sent. Errors name an option and
 * never repeat its value, which may be secret.
 */
import { PosternError } from './postern-error.ts'

export type PosternOptions = {
  /** `pst_…`. Default: the variable `POSTERN_DELIVERY_KEY`. */
  readonly deliveryKey?: string | undefined
  /**
   * The service, with or without `/v1/email`. Default: the variable `POSTERN_BASE_URL`. It is https, because
   * the delivery key crosses the network; http is for this machine and private networks: `localhost`, names
   * without a dot or below `.local`, `.internal`,
   * `.localhost`, `.svc` and `.test`, and private addresses.
   */
  readonly baseUrl?: string | undefined
  /**
   * Lets `baseUrl` be http to any host: the delivery key and the links can then be read on the way. Default
   * false.
   */
  readonly insecureHttp?: boolean | undefined
  /** Milliseconds for one attempt. Default 2,500. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds for a whole call, retries and pauses included. Default 4,000. */
  readonly budgetMs?: number | undefined
  /** Maximum attempts after the first. Default 3. */
  readonly maxRetries?: number | undefined
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

export type Settings = {
  readonly deliveryKey: string
  /** The address of the one endpoint. */
  readonly endpoint: string
  readonly timeoutMs: number
  readonly budgetMs: number
  readonly maxRetries: number
  readonly fetch: typeof fetch
}

/**
 * Checks the options that are given. Missing ones may still come from the environment.
 * @throws {PosternError} `invalid_config`
 */
export function checkGiven({ deliveryKey, baseUrl, ...rest }: PosternOptions): void {
  readSettings({ ...rest, deliveryKey: deliveryKey || 'pst_', baseUrl: baseUrl || 'https://postern' })
}

/** @throws {PosternError} `invalid_config` */
export function readSettings(options: PosternOptions): Settings {
  return {
    deliveryKey: readKey(options.deliveryKey ?? fromEnvironment('POSTERN_DELIVERY_KEY')),
    endpoint: `${readBaseUrl(options.baseUrl ?? fromEnvironment('POSTERN_BASE_URL'), options)}/v1/email`,
    timeoutMs: readCount('timeoutMs', options.timeoutMs ?? 2_500, 1),
    budgetMs: readCount('budgetMs', options.budgetMs ?? 4_000, 1),
    maxRetries: readCount('maxRetries', options.maxRetries ?? 3, 0),
    fetch: options.fetch ?? globalThis.fetch,
  }
}

const faulty = (message: string) => new PosternError('invalid_config', message)

// Node, Deno, Bun and workers with Node compatibility have `process.env`; others may not.
function fromEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name]
}

function readKey(key: string | undefined): string {
  if (!key) throw faulty('Give deliveryKey, or set POSTERN_DELIVERY_KEY.')
  // `fetch` would quote a malformed header in its error.
  if (!/^[\x21-\x7e]+$/.test(key)) throw faulty('The delivery key contains a space, line break or the like; trim it.')
  return key
}

/**
 * Names that lead to this machine or to a private network alone (RFC 6761, RFC 6762, RFC 8375), and private
 * addresses.
 */
const privateHost =
  /^(?:[^.[\]]+|.*\.(?:localhost|local|internal|test|invalid|svc)|127(?:\.\d+){3}|10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}|\[::1\]|\[f[cd][0-9a-f:]+\])$/

function readBaseUrl(text: string | undefined, { insecureHttp = false }: PosternOptions): string {
  if (!text) throw faulty('Give baseUrl, or set POSTERN_BASE_URL, such as https://postern.example.com.')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw faulty('baseUrl is not an absolute URL such as https://postern.example.com.')
  }
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw faulty('baseUrl must be http or https, without user name, query or fragment.')
  }
  if (url.protocol === 'http:' && !insecureHttp && !privateHost.test(url.hostname)) {
    throw faulty(
      'baseUrl must be https: over http the delivery key can be read on the way. For a host that only a private network reaches, set insecureHttp.',
    )
  }
  return url.href.replace(/(?:\/v1\/email)?\/*$/, '')
}

function readCount(name: string, value: number, least: number): number {
  // Timers hold 31 bits.
  if (Number.isFinite(value) && value >= least && value < 2 ** 31) return value
  throw faulty(`${name} must be at least ${least} and below 2^31.`)
}
