/**
 * Outages as operators see them: while a relay or the disk fails under load, each ten seconds the headline of
 * the console, the first conditions of the status for the whole service and for one app, and the queue,
 * beside the time of the last delivery and the links that have expired. The minutes are `MINUTES` in the
 * environment, two unless given; `--only` names the outages.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DatabaseAddress } from '../src/store/database-address.ts'
import { sendJson, startApiServer } from '../test/support/api-server.ts'
import { fillDisk, lackingDisk, makeDisk } from '../test/support/block-device.ts'
import { newVisitor, signIn } from '../test/support/console.ts'
import { databaseAt } from '../test/support/database.ts'
import { ask, newManagementToken } from '../test/support/management.ts'
import { makeCluster, startCluster } from '../test/support/postgres.ts'
import { newSender, relayTo, startTestService, type TestService, validBody } from '../test/support/service.ts'
import { startScriptedServer } from '../test/support/smtp.ts'
import type { Scope } from '../test/support/temporary.ts'
import type { Choice } from './main.ts'
import { type Engine, engines } from './processes.ts'

const outageMs = Number(process.env.MINUTES ?? 2) * 60_000
const everyMs = 10_000
/** Requests of two apps together. */
const perSecond = 20
const lifeMs = [900_000, 900_000, 900_000, 900_000, 40_000]
const mailbox = 'mailer@acme.test'

type Site = {
  readonly service: TestService
  readonly relay: Awaited<ReturnType<typeof startRelay>>
  readonly folder: string
}
type Outage = { readonly begin: (site: Site) => void; readonly end: (site: Site) => Promise<void> | void }

const by = (name: string): Outage => ({
  begin: ({ relay }) => relay.fail(name),
  end: ({ relay }) => relay.fail(''),
})

const outages: Readonly<Record<string, Outage>> = {
  soft: by('soft'),
  hard: { begin: ({ relay }) => relay.stop(), end: ({ relay }) => relay.start() },
  // It refuses, and then does not answer.
  worse: {
    begin: ({ relay }) => {
      relay.fail('soft')
      setTimeout(() => relay.stop(), outageMs / 2)
    },
    end: async ({ relay }) => {
      relay.fail('')
      await relay.start()
    },
  },
  password: by('password'),
  token: by('token'),
  disk: {
    begin: ({ folder }) => fillDisk(join(folder, 'balloon')),
    end: ({ folder }) => rmSync(join(folder, 'balloon')),
  },
}

/** A relay with a token server, whose ways to fail are switched. */
async function startRelay(scope: Scope) {
  const state = { fault: '', deliveredAt: 0 }
  const script = () => ({
    ehlo: '250-scripted\r\n250 AUTH XOAUTH2 PLAIN',
    auth: () => {
      if (state.fault === 'password') return '535 5.7.8 Error: authentication failed'
      return state.fault === 'token' ? '535 5.7.3 the token has expired' : '235 2.7.0 ok'
    },
    mail: (socket: { destroy(): void }) =>
      state.fault === 'password' || state.fault === 'token' ? socket.destroy() : '250 2.1.0 ok',
    dot: () => {
      if (state.fault === 'soft') return '451 4.7.1 Try again later'
      state.deliveredAt = Date.now()
      return '250 2.0.0 taken'
    },
  })
  let server = await startScriptedServer(scope, script)
  const { port } = server
  const tokens = await startApiServer(scope, (_asked, response, count) =>
    state.fault === 'token'
      ? sendJson(response, 401, { error: 'invalid_client', error_description: 'the secret has expired' })
      : sendJson(response, 200, { access_token: `token-${count}`, token_type: 'bearer', expires_in: 3600 }),
  )
  return {
    port,
    tokenUrl: tokens.url,
    deliveredAt: () => state.deliveredAt,
    fail: (name: string) => {
      state.fault = name
    },
    stop: () => server.close(),
    start: async () => {
      server = await startScriptedServer(scope, script, port)
    },
  }
}

async function findDatabase(scope: Scope, engine: Engine): Promise<{ database: DatabaseAddress; folder: string }> {
  const { folder } = makeDisk(scope)
  if (engine === 'SQLite') return { database: databaseAt(`sqlite:${join(folder, 'postern.db')}`), folder }
  const cluster = makeCluster(scope, join(folder, 'data'))
  const { url } = await startCluster(scope, cluster, { max_wal_size: '64MB', min_wal_size: '32MB' })
  return { database: databaseAt(url), folder }
}

/** Posts at a steady rate, whatever is answered; the life of every fifth link is short. */
function startLoad(service: TestService, keys: readonly string[]) {
  let n = 0
  const timer = setInterval(() => {
    n += 1
    const expiresAt = new Date(Date.now() + (lifeMs[n % lifeMs.length] ?? 0)).toISOString()
    const body = JSON.stringify(validBody({ to: `r${n}@example.com`, expiresAt }))
    const headers = { authorization: `Bearer ${keys[n % keys.length]}`, 'content-type': 'application/json' }
    fetch(service.apiUrl, { method: 'POST', headers, body }).then(
      (answer) => answer.arrayBuffer(),
      () => {},
    )
  }, 1000 / perSecond)
  return () => clearInterval(timer)
}

const clock = (ms: number) => (ms === 0 ? 'never' : new Date(ms).toISOString().slice(11, 19))
const readHead = (page: string) => /<h1>([^<]*)<\/h1>/.exec(page)?.[1] ?? 'no headline'

async function watch(site: Site, [name, { begin, end }]: readonly [string, Outage]): Promise<void> {
  const { relay, service } = site
  const visitor = newVisitor(service, await signIn(service))
  const tokens = [
    await newManagementToken(service, 'reader'),
    await newManagementToken(service, 'reader', [service.app.id]),
  ]
  const show = async (begunAt: number) => {
    const [all, own] = await Promise.all(tokens.map((token) => ask(service, 'GET /v1/status', { token })))
    const queue = await ask(service, 'GET /v1/queue', { token: tokens[0] ?? '' })
    const page = await (await visitor.get('/')).text()
    console.log(
      `${Math.round((Date.now() - begunAt) / 1000)} s (${clock(Date.now())}); last delivery ${clock(relay.deliveredAt())}; expired today ${all?.body.today?.expired}`,
    )
    console.log(`  console: ${readHead(page)}`)
    for (const { message, urgent } of all?.body.attention ?? []) console.log(`  ${urgent ? '!' : '-'} ${message}`)
    console.log(`  one app: ${own?.body.attention?.[0]?.message ?? 'nothing'}`)
    console.log(`  queue: ${queue.body.stops?.[0]?.message ?? 'nothing'}`)
  }
  await sleep(everyMs)
  console.log(`\n## ${name} begins at ${clock(Date.now())}`)
  const begunAt = Date.now()
  begin(site)
  for (let passed = 0; passed < outageMs; passed += everyMs) {
    await sleep(Math.max(0, begunAt + passed + everyMs - Date.now()))
    await show(begunAt)
  }
  await end(site)
  console.log(`## ${name} ended at ${clock(Date.now())}`)
  for (let n = 1; n <= 3; n++) {
    await sleep(everyMs)
    await show(begunAt)
  }
}

export async function run(_: Scope, { engine: only, only: names }: Choice): Promise<void> {
  const lacks = await lackingDisk()
  const chosen = Object.entries(outages).filter(([name]) => names === undefined || names.split(',').includes(name))
  for (const engine of engines.filter((each) => only === undefined || each.toLowerCase() === only))
    for (const outage of chosen) {
      if (lacks !== false) return console.log(`skipping: ${lacks}`)
      const ends: (() => unknown)[] = []
      const inner: Scope = { after: (end) => void ends.push(end) }
      console.log(`\n# ${engine}`)
      const relay = await startRelay(inner)
      const { database, folder } = await findDatabase(inner, engine)
      const oauth = {
        tokenUrl: relay.tokenUrl,
        clientId: 'c',
        scope: 'mail',
        grant: { kind: 'secret', secret: 'outages-secret' },
      } as const
      const credentials = outage[0] === 'token' ? { user: mailbox, oauth } : { user: mailbox, pass: 'p' }
      const service = await startTestService(inner, {
        database,
        isDev: false,
        relays: [relayTo(relay.port, { credentials })],
      })
      const other = await newSender(service, 'globex')
      const stop = startLoad(service, [service.key, other.key])
      try {
        await watch({ service, relay, folder }, outage)
      } finally {
        stop()
        for (const end of ends.toReversed()) await end()
      }
    }
}
