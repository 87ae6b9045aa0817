/** Kills processes that send, and measures how soon the mail they held is with the relay. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailRecord } from '../../src/store/operator-store.ts'
import type { Store } from '../../src/store/store.ts'
import { type RunningPostern, spawnServe, startServe } from './cli.ts'
import { listEmails } from './operator.ts'
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
  const relay = await startHoldingServer(scope)
  const api = await startServe(scope, {
    POSTERN_DATABASE_URL: options.databaseUrl,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}?connections=10`,
    POSTERN_ROLES: 'api',
  })
  const store = await openStore(parseConfig(api.env, 'command'), { onFatal: assert.fail })
  atEnd(scope, () => store.close())
  const workerEnv = { ...api.env, POSTERN_ROLES: 'worker' }
  const start = () => spawnServe(scope, workerEnv)
  const workers = await Promise.all(Array.from({ length: options.workers }, start))
  const waitsMs: number[] = []
  let held = 0
  while (waitsMs.length < options.kills) {
    relay.hold()
    const posting = post(api, options.emails / options.kills)
    await eventually(async () => (await idsHeld(store)).length > 0)
    await sleep(Math.random() * 50)
    await killOne(workers.shift())
    const killedMs = Date.now()
    const ids = await idsHeld(store)
    relay.release()
    workers.push(await start())
    const beganMs = options.workers === 1 ? Date.now() : killedMs
    const lost = (await untilDelivered(store, ids)).filter(({ trail }) => hasLost(trail, killedMs))
    await posting
    if (lost.length === 0) continue // the worker that was killed held nothing
    waitsMs.push(Math.max(...lost.map(({ finishedAt }) => (finishedAt ?? 0) - beganMs), 0))
    held += lost.length
  }
  return { waitsMs, held, store }
}

/** Can answer no message for a while, so that workers hold some when they are killed. */
async function startHoldingServer(scope: Scope) {
  let released = Promise.withResolvers<void>()
  const { port } = await startSmtpServer(scope, {
    onData(stream, _session, callback) {
      stream.resume()
      stream.on('end', async () => {
        await released.promise
        callback(null, 'queued')
      })
    },
  })
  const hold = () => {
    released = Promise.withResolvers<void>()
  }
  return { port, hold, release: () => released.resolve() }
}

/** Each to another recipient, twenty at once. */
async function post(service: RunningPostern, emails: number): Promise<void> {
  let posted = 0
  const next = async (): Promise<void> => {
    while (posted < emails) await postOne(service, `t${posted++}t${Date.now()}@example.com`)
  }
  await Promise.all(Array.from({ length: 20 }, next))
}

async function postOne({ api, key }: Pick<RunningPostern, 'api' | 'key'>, to: string): Promise<EmailId> {
  const body = JSON.stringify(validBody({ to }))
  const answer = await send(`${api}/v1/email`, body, { authorization: `Bearer ${key}` })
  assert.equal(answer.status, 202)
  return answer.headers.get('email-id') as EmailId
}

const idsHeld = async (store: Store): Promise<EmailId[]> =>
  (await listEmails(store, { state: 'sending', limit: 1000 })).map(({ id }) => id)

async function killOne(process: Process | undefined): Promise<void> {
  assert.ok(process)
  const ended = once(process.child, 'exit')
  process.child.kill('SIGKILL')
  await ended
}

const untilDelivered = (store: Store, ids: readonly EmailId[]): Promise<EmailRecord[]> =>
  Promise.all(
    ids.map((id) =>
      eventually(async () => {
        const record = await store.findEmail(id)
        return record?.state === 'delivered' ? record : null
      }),
    ),
  )

const hasLost = (trail: EmailRecord['trail'], sinceMs: number): boolean =>
  trail.some(({ at, outcome }) => outcome === 'lost' && at >= sinceMs)

export type Poisoned = {
  /** From acceptance to delivery, for emails with no death in between. */
  readonly delaysMs: readonly number[]
  readonly deaths: number
  /** The email that killed them, when its last death was on record. */
  readonly poison: EmailRecord
  /** The output of all processes; a line may be lost with its process. */
  readonly log: string
}

const poisonAddress = 'poison@example.com'

/** Posts one email after another, while a relay kills the service whenever it is asked for one recipient. */
export async function poisonService(
  scope: Scope,
  { databaseUrl, forMs }: { databaseUrl: string; forMs: number },
): Promise<Poisoned> {
  const kill = { service: () => {} }
  const { port } = await startSmtpServer(scope, {
    onRcptTo({ address }, _session, callback) {
      if (address === poisonAddress) kill.service()
      else callback()
    },
  })
  const first = await startServe(scope, {
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
  })
  const store = await openStore(parseConfig(first.env, 'command'), { onFatal: assert.fail })
  atEnd(scope, () => store.close())
  const supervised = supervise(scope, first)
  kill.service = supervised.kill
  const poisonId = await postOne(first, poisonAddress)
  const ids: EmailId[] = []
  const endMs = Date.now() + forMs
  for (let n = 0; Date.now() < endMs; n++) {
    const service = { api: supervised.api(), key: first.key }
    const id = await postOne(service, `s${n}@example.com`).catch(() => null) // while none is running
    if (id !== null) ids.push(id)
    await sleep(10)
  }
  const records = await untilDelivered(store, ids)
  // The service may die again at any time, so both are read at one moment.
  const { deaths, poison } = await eventually(async () => {
    const record = await store.findEmail(poisonId)
    const died = supervised.deathsMs.length
    const isCounted = record?.state === 'deferred' && record.lostLeases === died
    return isCounted ? { deaths: died, poison: record } : null
  })
  await supervised.stop()
  const { deathsMs } = supervised
  const delaysMs = records
    .map(({ acceptedAt, finishedAt }) => ({ acceptedAt, finishedAt: finishedAt ?? acceptedAt }))
    .filter(({ acceptedAt, finishedAt }) => !deathsMs.some((ms) => ms >= acceptedAt && ms <= finishedAt))
    .map(({ acceptedAt, finishedAt }) => finishedAt - acceptedAt)
  return { delaysMs, deaths, poison, log: supervised.log() }
}

/** Starts the service again whenever it has died. */
function supervise(scope: Scope, first: Process) {
  const logs: string[] = []
  const deathsMs: number[] = []
  let service = first
  let over = false
  const keepRunning = async () => {
    while (!over) {
      if (service.child.signalCode === null) await once(service.child, 'exit')
      logs.push(service.output())
      if (over) return
      deathsMs.push(Date.now())
      service = await spawnServe(scope, first.env)
    }
  }
  const ended = keepRunning()
  const kill = () => void service.child.kill('SIGKILL')
  return {
    kill,
    deathsMs,
    api: () => service.api,
    log: () => logs.join(''),
    stop: async () => {
      over = true
      kill()
      await ended
    },
  }
}
