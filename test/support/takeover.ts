/** Kills processes that send, and measures how soon the mail they held is with the relay. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { type RunningPostern, spawnServe, startServe } from './cli.ts'
import { send, validBody } from './service.ts'
import { startSmtpServer } from './smtp.ts'
import { atEnd, type Scope } from './temporary.ts'
import { eventually } from './wait.ts'

type Process = Omit<RunningPostern, 'key'>

/** Milliseconds until all that a killed process held was with the relay, one value a kill. */
export type Takeovers = { readonly waitsMs: readonly number[]; readonly held: number; readonly store: Store }

export type KillOptions = {
  readonly databaseUrl: string
  readonly emails: number
  readonly kills: number
  /** Workers beside each other: the time is counted from the kill. With one, from when it is ready again. */
  readonly workers: number
}

export async function killWorkers(scope: Scope, options: KillOptions): Promise<Takeovers> {
  const { port } = await startSlowServer(scope)
  const api = await startServe(scope, {
    POSTERN_DATABASE_URL: options.databaseUrl,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}?connections=10`,
    POSTERN_ROLES: 'api',
  })
  const store = await openStore(parseConfig(api.env, 'command'), { onFatal: assert.fail })
  atEnd(scope, () => store.close())
  const workerEnv = { ...api.env, POSTERN_ROLES: 'worker' }
  const start = () => spawnServe(scope, workerEnv)
  const workers = await Promise.all(Array.from({ length: options.workers }, start))
  const waitsMs: number[] = []
  let held = 0
  for (let kill = 0; kill < options.kills; kill++) {
    const posting = post(api, options.emails / options.kills)
    await eventually(async () => (await idsHeld(store)).length > 0)
    await sleep(Math.random() * 50)
    await killOne(workers.shift())
    const ids = await idsHeld(store)
    let beganMs = Date.now()
    workers.push(await start())
    if (options.workers === 1) beganMs = Date.now()
    waitsMs.push((await lastDelivered(store, ids)) - beganMs)
    held += ids.length
    await posting
  }
  return { waitsMs, held, store }
}

/** Takes each message after 25 ms, so that workers hold some when they are killed. */
const startSlowServer = (scope: Scope) =>
  startSmtpServer(scope, {
    onData(stream, _session, callback) {
      stream.resume()
      stream.on('end', () => setTimeout(callback, 25, null, 'queued'))
    },
  })

/** Each to another recipient, twenty at once. */
async function post({ api, key }: RunningPostern, emails: number): Promise<void> {
  let posted = 0
  const next = async (): Promise<void> => {
    while (posted < emails) {
      const body = JSON.stringify(validBody({ to: `t${posted++}t${Date.now()}@example.com` }))
      const answer = await send(`${api}/v1/email`, body, { authorization: `Bearer ${key}` })
      assert.equal(answer.status, 202)
    }
  }
  await Promise.all(Array.from({ length: 20 }, next))
}

const idsHeld = async (store: Store): Promise<EmailId[]> =>
  (await store.listEmails({ state: 'sending', limit: 1000 })).map(({ id }) => id)

async function killOne(process: Process | undefined): Promise<void> {
  assert.ok(process)
  const ended = once(process.child, 'exit')
  process.child.kill('SIGKILL')
  await ended
}

/** When the last of these emails was delivered. */
async function lastDelivered(store: Store, ids: readonly EmailId[]): Promise<number> {
  const ends = ids.map((id) =>
    eventually(async () => {
      const record = await store.findEmail(id)
      return record?.state === 'delivered' ? record.finishedAt : null
    }),
  )
  return Math.max(0, ...(await Promise.all(ends)))
}

/** Posts one email after another, and lets a relay kill the worker whenever it is asked for `poison`. */
export type Poisoned = {
  /** From acceptance to delivery, for emails accepted while a worker was running. */
  readonly delaysMs: readonly number[]
  readonly deaths: number
  readonly poison: EmailId
  readonly store: Store
  readonly log: string
}

const poisonAddress = 'poison@example.com'

export async function poisonWorkers(
  scope: Scope,
  { databaseUrl, forMs }: { databaseUrl: string; forMs: number },
): Promise<Poisoned> {
  const logs: string[] = []
  const gaps: [number, number][] = []
  const state: { worker: Process | null; deaths: number; over: boolean } = {
    worker: null,
    deaths: 0,
    over: false,
  }
  const { port } = await startSmtpServer(scope, {
    onRcptTo({ address }, _session, callback) {
      if (address === poisonAddress) state.worker?.child.kill('SIGKILL')
      else callback()
    },
  })
  const api = await startServe(scope, {
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTERN_ROLES: 'api',
  })
  const store = await openStore(parseConfig(api.env, 'command'), { onFatal: assert.fail })
  atEnd(scope, () => store.close())
  const supervise = async () => {
    let diedMs = Date.now()
    while (!state.over) {
      const worker = await spawnServe(scope, { ...api.env, POSTERN_ROLES: 'worker' })
      const ended = once(worker.child, 'exit')
      state.worker = worker
      gaps.push([diedMs, Date.now()])
      await ended
      logs.push(worker.output())
      diedMs = Date.now()
      if (!state.over) state.deaths += 1
    }
  }
  const supervised = supervise()
  await eventually(() => state.worker)
  const authorization = { authorization: `Bearer ${api.key}` }
  const body = JSON.stringify(validBody({ to: poisonAddress }))
  const answer = await send(`${api.api}/v1/email`, body, authorization)
  const poison = (answer.headers.get('email-id') ?? '') as EmailId
  const ids: EmailId[] = []
  const endMs = Date.now() + forMs
  for (let n = 0; Date.now() < endMs; n++) {
    const stranger = JSON.stringify(validBody({ to: `s${n}@example.com` }))
    const { headers } = await send(`${api.api}/v1/email`, stranger, authorization)
    ids.push((headers.get('email-id') ?? '') as EmailId)
    await sleep(10)
  }
  await eventually(async () => {
    const { state: poisonState, lostLeases } = (await store.findEmail(poison)) ?? {}
    return poisonState === 'deferred' && lostLeases === state.deaths
  })
  const records = await Promise.all(
    ids.map((id) =>
      eventually(async () => {
        const record = await store.findEmail(id)
        return record?.state === 'delivered' ? record : null
      }),
    ),
  )
  state.over = true
  state.worker?.child.kill('SIGKILL')
  await supervised
  // An email that a dying worker held, or that came while none was running, waited for the next worker.
  const delaysMs = records
    .filter(({ acceptedAt, lostLeases }) => lostLeases === 0 && !isIn(gaps, acceptedAt))
    .map(({ acceptedAt, finishedAt }) => (finishedAt ?? 0) - acceptedAt)
  return { delaysMs, deaths: state.deaths, poison, store, log: logs.join('') }
}

const isIn = (gaps: readonly (readonly [number, number])[], ms: number): boolean =>
  gaps.some(([from, to]) => ms >= from - 5 && ms <= to)
