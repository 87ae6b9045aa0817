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

/** @throws {PosternError} `invalid_config`; it names every missing setting */
export function readSettings(options: PosternOptions): Settings {
  const key = options.deliveryKey ?? fromEnvironment('POSTERN_DELIVERY_KEY')
  const url = options.baseUrl ?? fromEnvironment('POSTERN_BASE_URL')
  if (!key || !url) {
    const missing = [
      ...(key ? [] : ['Pass deliveryKey, or set POSTERN_DELIVERY_KEY.']),
      ...(url ? [] : ['Pass baseUrl, or set POSTERN_BASE_URL, such as https://mail-api.example.com.']),
    ]
    throw faulty(missing.join(' '))
  }
  return {
    deliveryKey: readKey(key),
    endpoint: `${readBaseUrl(url, options)}/v1/email`,
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

function readKey(key: string): string {
  // `fetch` would quote a malformed header in its error.
  if (!/^[\x21-\x7e]+$/.test(key)) throw faulty('The delivery key contains a space, line break or the like; trim it.')
  return key
}

/**
 * Checks the form of a delivery key: `pst_`, 43 characters, and 6 of a checksum (CRC-32 in base 62).
 * @throws {PosternError} `invalid_config`
 */
export function checkKey(key: string): void {
  if (!/^pst_[0-9A-Za-z]{49}$/.test(key) || checksum(key.slice(0, -6)) !== key.slice(-6))
    throw faulty('The delivery key is mistyped or cut short: copy it whole, pst_ and 49 characters, without quotes.')
}

function checksum(text: string): string {
  let crc = -1
  for (const character of text) {
    crc ^= character.charCodeAt(0)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let written = ''
  for (let rest = ~crc >>> 0; written.length < 6; rest = Math.floor(rest / 62)) written = digits[rest % 62] + written
  return written
}

/**
 * Names that lead to this machine or to a private network alone (RFC 6761, RFC 6762, RFC 8375), and private
 * addresses.
 */
const privateHost =
  /^(?:[^.[\]]+|.*\.(?:localhost|local|internal|test|invalid|svc)|127(?:\.\d+){3}|10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}|\[::1\]|\[f[cd][0-9a-f:]+\])$/

function readBaseUrl(text: string, { insecureHttp = false }: PosternOptions): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw faulty('baseUrl is not an absolute URL such as https://mail-api.example.com.')
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
