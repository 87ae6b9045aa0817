/**
 * A service with two apps: `shop`, which sends, and `acme`, whose people and keys do what they may. It is set
 * up once for each engine and checkout, through the API and the commands of that checkout; each case has a
 * copy of its database.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import type { Variables } from '../../test/support/cli.ts'
import { freePort } from '../../test/support/ports.ts'
import { type BenchedService, programOf, type Sink, type Subject, startPostern } from '../processes.ts'
import type { Databases } from './databases.ts'

export const bounceAddress = 'bounces@bounce.acme.test'
export const providerCredentials = 'postern:11111111111111111111'

/** Secrets of the auth server of acme, each replaced while the one before goes on working. */
const authHookSecrets = 100
const graceSeconds = 30 * 86_400

/** A database with both apps, and who may do what in it. */
export type Prepared = {
  readonly subject: Subject
  readonly env: Variables
  readonly acme: string
  readonly keys: { readonly shop: string; readonly acme: string }
  readonly tokens: { readonly admin: string; readonly operator: string }
  readonly authHookSecrets: number
}

/** A running service. */
export type Place = Prepared & {
  readonly service: BenchedService
  readonly bouncePort: number
}

const settings = {
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
  allowedUrls: ['https://app.acme.test'],
  limits: { keyPerMinute: 6_000_000, daily: 1_000_000_000 },
  webhookUrl: 'http://127.0.0.1:1/postern',
}

export async function prepare(databases: Databases, subject: Subject, sink: Sink): Promise<Prepared> {
  const env = {
    POSTERN_DATABASE_URL: await databases.make(),
    POSTERN_SECRET_KEYS: newSecretKey('bench'),
    POSTERN_ROLES: 'api,worker,console,reports,auth-hooks',
    ...Object.fromEntries(
      ['API', 'OPS', 'CONSOLE', 'AUTH_HOOKS', 'REPORTS'].map((name) => [`POSTERN_${name}_LISTEN`, '127.0.0.1:0']),
    ),
    POSTERN_REPORTS_KEYS: `basic:${providerCredentials}`,
    POSTERN_BOUNCE_ADDRESS: bounceAddress,
    POSTERN_DNS_SERVERS: '127.0.0.1:1',
    POSTERN_APP_WEBHOOKS_PRIVATE: 'yes',
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}`,
    POSTERN_QUEUE_MAX: '100000000',
    POSTERN_LOG_LEVEL: 'error',
  }
  await runCommand(subject, env, ['migrate'])
  const { stdout } = await runCommand(subject, env, ['token', 'create', 'bench', '--role', 'admin'])
  const admin = stdout.trim()
  const bare = { ...{ subject, env, acme: '', authHookSecrets: 0 }, keys: { shop: '', acme: '' } }
  return during({ ...bare, tokens: { admin, operator: '' } }, async (place) => {
    const make = async (path: string, body: object, method = 'POST') => {
      const { document, status } = await ask(place, { method, path, body, token: admin })
      if (status >= 300) throw new Error(`${method} ${path} answered ${status}`)
      return document
    }
    await make('/v1/apps/shop', settings, 'PUT')
    const { id: acme = '' } = await make('/v1/apps/acme', settings, 'PUT')
    const { key: shopKey = '' } = await make('/v1/apps/shop/keys', {})
    const { key: acmeKey = '' } = await make('/v1/apps/acme/keys', {})
    await make('/v1/apps/acme/webhooks/secret', {})
    const scoped = { role: 'operator', apps: ['acme'] }
    const { token: operator = '' } = await make('/v1/tokens', { name: 'acme team', ...scoped })
    let made = 0
    for (let n = 0, token = ''; n < authHookSecrets; n++) {
      // Each token may make 30 requests at once.
      if (n % 25 === 0) token = (await make('/v1/tokens', { name: `acme team ${n}`, ...scoped })).token ?? ''
      const order = { path: '/v1/apps/acme/auth-hooks/supabase', body: { graceSeconds }, token, method: 'POST' }
      const { status } = await ask(place, order)
      if (status === 201) made += 1
    }
    const tokens = { admin, operator }
    return { subject, env, acme, keys: { shop: shopKey, acme: acmeKey }, tokens, authHookSecrets: made }
  })
}

/** Runs one command of the checkout. It ends with the signal. */
export const runCommand = ({ checkout }: Subject, env: Variables, args: readonly string[], signal?: AbortSignal) => {
  const [file, program] = programOf(checkout)
  const options = { env: { PATH: process.env.PATH, ...env }, timeout: 60_000, killSignal: 'SIGKILL' } as const
  return promisify(execFile)(file, [program, ...args], { ...options, ...(signal && { signal }) })
}

/** A service takes one second to start, and longer if it changes the tables. */
const startMs = 30_000

const failAfter = (ms: number, signal: AbortSignal): Promise<never> =>
  sleep(ms, undefined, { signal }).then(() => {
    throw new Error(`not started after ${ms} ms`)
  })

/** Starts the service, and kills it after `work`. */
export async function during<T>(prepared: Prepared, work: (place: Place) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = []
  const bouncePort = await freePort()
  try {
    const more = { POSTERN_BOUNCE_LISTEN: `127.0.0.1:${bouncePort}` }
    const bed = { checkout: prepared.subject.checkout, env: prepared.env }
    const starting = startPostern({ after: (end) => void ends.push(end) }, bed, more)
    const late = new AbortController()
    const service = await Promise.race([starting, failAfter(startMs, late.signal)])
    late.abort()
    const exited = once(service.child, 'exit')
    ends.push(() => exited)
    return await work({ ...prepared, service, bouncePort })
  } finally {
    for (const end of ends) await end()
  }
}

type Document = Readonly<Partial<Record<'id' | 'key' | 'token' | 'link', string>>> & {
  readonly items?: readonly unknown[]
}
export type Request = {
  readonly method: string
  readonly path: string
  readonly token: string
  readonly body?: object
  readonly signal?: AbortSignal
}

/** One request to the management API. */
export async function ask(
  { service }: Place,
  { method, path, token, body, signal }: Request,
): Promise<{ readonly status: number; readonly document: Document }> {
  const response = await fetch(`${service.console}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  return { status: response.status, document: (await response.json()) as Document }
}
