/**
 * Shared by the peers: the HTTP side of an auth service that somebody writes on a queue library, with the
 * checks that Postern makes as far as the library lets them be made. Keys are in memory.
 */
import { createHash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { createTransport } from 'nodemailer'

export type Email = { readonly to: string; readonly url: string; readonly expiresAt: string }

/** The limits of one request, in the order in which they are checked. */
type Counter = { readonly name: string; readonly max: number; readonly windowS: number }

export type Accepting = {
  readonly idempotency: string
  readonly counters: readonly Counter[]
  readonly email: Email
}

/**
 * Checks the key's limit, the recipient's and the app's, remembers the idempotency key, and queues the email.
 */
type Accept = (request: Accepting) => Promise<'queued' | 'replayed' | 'limited'>

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')

const isAllowed = (link: string): boolean => {
  const { origin, searchParams } = new URL(link)
  return origin === 'https://app.acme.test' && [...searchParams.keys()].join() === 'token'
}

/** Serves `POST /v1/email` for these delivery keys, and tells the parent process its port. */
export async function serve(keys: readonly string[], accept: Accept): Promise<void> {
  const apps = new Map(keys.map((key, n) => [sha256(key), `app${n}`]))
  const web = Fastify()
  web.post<{ Body: Email }>('/v1/email', async ({ headers, body }, reply) => {
    const app = apps.get(sha256((headers.authorization ?? '').slice('Bearer '.length)))
    if (app === undefined) return reply.code(401).send({ error: 'invalid key' })
    if (!isAllowed(body.url) || Date.parse(body.expiresAt) <= Date.now()) return reply.code(403).send({ error: 'link' })
    const result = await accept({
      idempotency: `${app}:${headers['idempotency-key']}`,
      counters: [
        { name: `key:${app}`, max: 6_000_000, windowS: 60 },
        { name: `to:${app}:${sha256(body.to)}`, max: 10, windowS: 3600 },
        { name: `day:${app}`, max: 1_000_000_000, windowS: 86_400 },
      ],
      email: body,
    })
    return result === 'limited' ? reply.code(429).send({ error: 'limit' }) : reply.code(202).send({ ok: true })
  })
  await web.listen({ port: 0, host: '127.0.0.1' })
  process.send?.((web.server.address() as AddressInfo).port)
}

/** Sends by a pool of connections, unless the link has expired. */
export function newSender(port: number, connections: number): (email: Email) => Promise<void> {
  const pool = createTransport({
    host: '127.0.0.1',
    port,
    pool: true,
    maxConnections: connections,
    maxMessages: 1000,
    ignoreTLS: true,
  })
  return async ({ to, url, expiresAt }) => {
    if (Date.parse(expiresAt) <= Date.now()) return
    const text = `Sign in to Acme: ${url}`
    const html = `<p>Sign in to <b>Acme</b></p><p><a href="${url.replaceAll('&', '&amp;')}">Sign in</a></p>`
    await pool.sendMail({ from: 'Acme <auth@acme.test>', to, subject: 'Sign in to Acme', text, html })
  }
}

/** The order that starts a peer: as API or as worker, on a database of its own. */
export type PeerOrder = {
  readonly role: 'api' | 'worker'
  readonly databaseUrl: string
  readonly keys: readonly string[]
  readonly sinkPort: number
  readonly connections: number
}
