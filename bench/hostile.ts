/**
 * Requests of one app beside another caller who is hostile: a key that sends 15 KB of spaces in its
 * Content-Type, and a reader's token that previews app schemes of 15,000 characters; each beside as many
 * valid requests of the same kind. On SQLite: the text is read before any store is asked.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { hashToken, newToken } from '../src/domain/operator/management-token.ts'
import { operator } from '../test/support/operator.ts'
import type { Scope } from '../test/support/temporary.ts'
import { HttpClient } from './http-client.ts'
import type { LoopResult } from './loop.ts'
import { comparedTable, count, report, type Table } from './measure.ts'
import { type Bed, makeBed, startLoader, startPostern, subjects, useStore } from './processes.ts'

const load = { clients: 16, ms: 10_000, rate: 200 }
const rounds = 1
/** For all connections of the other caller together. */
const othersPerSecond = 160
const hostileLength = 15_000

type Ask = (client: HttpClient, n: number) => Promise<string>
type Situation = {
  readonly name: string
  readonly connections: number
  readonly port: number
  readonly ask: Ask
}

export async function run(scope: Scope): Promise<void> {
  const loader = startLoader(scope, { anyAnswer: true })
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const subject of subjects.filter(({ engine }) => engine === 'SQLite')) {
    const bed = await makeBed(scope, subject)
    const more = { POSTERN_CONSOLE_LISTEN: '127.0.0.1:0', POSTERN_ROLES: 'api,console' }
    const service = await startPostern(scope, bed, more)
    const consolePort = Number(new URL(service.console).port)
    const reader = await newTokens(bed)
    const results: (readonly [string, LoopResult[]])[] = []
    let serial = 500_000_000
    for (const situation of situationsOf(bed, { port: service.port, consolePort, ...reader })) {
      const own: LoopResult[] = []
      let answered = 0
      for (let round = 0; round < rounds; round++) {
        serial += load.rate * load.ms
        const order = { ports: [service.port], keys: bed.keys.slice(1), ...load, serial }
        // The other caller stops when the load does: a service that it stalls would answer nobody for
        // minutes.
        const others = beside(situation, AbortSignal.timeout(load.ms))
        own.push(await loader(order))
        answered += await others
      }
      const perSecond = (answered * 1000) / (rounds * load.ms)
      const refused = own.map(({ answers }) => Object.entries(answers).filter(([status]) => status !== '202'))
      const lost = refused.flat().map(([status, times]) => `${times} × ${status}`)
      const name = `${situation.name} (${count(perSecond)} a second)${lost.length > 0 ? `; own: ${lost.join(', ')}` : ''}`
      results.push([name, own])
    }
    tables[`${load.rate} requests a second to ${subject.name}, beside another caller`] = comparedTable(results)
    measured[subject.name] = results
  }
  report('hostile', tables, measured)
}

/** The tokens of a reader of one app, and the app's slug. */
const newTokens = (bed: Bed): Promise<{ tokens: string[]; slug: string }> =>
  useStore(bed, async (store) => {
    const [app] = await store.listApps()
    if (app === undefined) throw new Error('the bed has no apps')
    const tokens = Array.from({ length: 20 }, () => newToken()) // each has a rate
    for (const token of tokens) {
      const record = {
        hash: hashToken(token),
        name: token.slice(-8),
        role: 'reader',
        apps: [app.id],
      } as const
      await store.createToken({ ...record, expiresAt: store.now() + 86_400_000 }, operator)
    }
    return { tokens, slug: app.slug }
  })

/** The requests of the other caller, as long as the signal lets them; returns how many were answered. */
async function beside({ connections, port, ask }: Situation, signal: AbortSignal): Promise<number> {
  let answered = 0
  const pauseMs = (connections * 1000) / othersPerSecond
  const one = async (index: number) => {
    const client = await HttpClient.open(port)
    await sleep((index * pauseMs) / connections)
    for (let n = index; !signal.aborted; n += connections) {
      const begunMs = performance.now()
      await Promise.race([ask(client, n), aborted(signal)])
      if (signal.aborted) break
      answered += 1
      await sleep(Math.max(0, pauseMs - (performance.now() - begunMs)))
    }
    client.close()
  }
  await Promise.all(Array.from({ length: connections }, (_, index) => one(index)))
  return answered
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

type Targets = {
  readonly port: number
  readonly consolePort: number
  readonly tokens: readonly string[]
  readonly slug: string
}

function situationsOf(bed: Bed, { port, consolePort, slug, tokens }: Targets): Situation[] {
  const key = bed.keys[0] ?? ''
  const post = (type: string, n: number) => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const url = 'https://app.acme.test/auth/magic?token=x'
    const body = JSON.stringify({ to: `other${n}@example.com`, type: 'magic_link', url, expiresAt })
    return `POST /v1/email HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  const preview = (scheme: string, n: number) => {
    const body = JSON.stringify({ type: 'magic_link', settings: { appSchemes: [scheme] } })
    const token = tokens[n % tokens.length] ?? ''
    return `POST /v1/apps/${slug}/preview HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  const hostileType = `application/json${' '.repeat(hostileLength)}x`
  const hostileScheme = `acme://${'a'.repeat(hostileLength)}?`
  const api = { connections: 16, port }
  const management = { connections: 4, port: consolePort }
  return [
    { name: 'alone', connections: 0, port, ask: () => Promise.resolve('') },
    { name: 'valid requests', ...api, ask: (client, n) => client.ask(post('application/json', n)) },
    { name: 'hostile Content-Type', ...api, ask: (client, n) => client.ask(post(hostileType, n)) },
    { name: 'valid previews', ...management, ask: (client, n) => client.ask(preview('acme', n)) },
    { name: 'hostile previews', ...management, ask: (client, n) => client.ask(preview(hostileScheme, n)) },
  ]
}
