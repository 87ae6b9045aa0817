/** The requests of acme and of strangers, beside those of the app that is measured. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answers, describeOthers, giveMail, hammer, newCaller, signalAfter, stayConnected } from './callers.ts'
import { ask, bounceAddress, type Place, providerCredentials, type Request, runCommand } from './place.ts'

/** Runs until the signal. Returns a note for the table. */
export type Flood = (place: Place, signal: AbortSignal) => Promise<string>

/** As many as the program of an operator, or of a stranger, might have. */
const clients = 8

type Wanted = Omit<Request, 'token' | 'signal'>

export type Call = (n: number, place: Place) => Wanted

/** Calls of acme's operator in turn. */
export const operate =
  (...calls: readonly Call[]): Flood =>
  async (place, signal) => {
    const token = place.tokens.operator
    const answers = await hammer(signal, { clients }, async (n) => {
      const call = calls[Math.floor(n / clients) % calls.length]
      if (call === undefined) throw new Error('there are no calls')
      return String((await ask(place, { ...call(n, place), token, signal })).status)
    })
    return describeOthers(answers)
  }

/** Makes each call once, by a token whose rate nothing else uses. */
export const makeOnce =
  (...calls: readonly Call[]) =>
  async (place: Place): Promise<string> => {
    for (const [n, call] of calls.entries()) {
      await ask(place, { ...call(-1 - n, place), token: place.tokens.admin })
    }
    return ''
  }

const portOf = (url = 'http://none:1') => Number(new URL(url).port)

const writePost = (path: string, headers: Readonly<Record<string, string>>, body: string): string => {
  const all = { host: '127.0.0.1', ...headers, 'content-length': String(body.length) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

/** Emails of acme, a hundred a second. */
const send =
  (write: (n: number) => Readonly<Record<string, unknown>>): Flood =>
  async ({ keys, service }, signal) => {
    const callers = Array.from({ length: clients }, () => newCaller(service.port, signal))
    const answers = await hammer(signal, { clients, everyMs: 80 }, (n, client) => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      const email = { type: 'magic_link', url: 'https://app.acme.test/auth?token=x', expiresAt, ...write(n) }
      const headers = {
        ...{ authorization: `Bearer ${keys.acme}`, 'content-type': 'application/json' },
        'idempotency-key': `acme-${n}`,
      }
      return callers[client]?.(writePost('/v1/email', headers, JSON.stringify(email))) ?? Promise.reject()
    })
    return describeOthers(answers)
  }

export const sendMail = send((n) => ({ to: `other${n}@example.com` }))
export const sendRefused = send((n) => ({ to: `other${n}@example.com`, url: 'https://other.test/' }))
export const sendToDead = send((n) => ({ to: `dead${1000 + n}@example.com` }))

export const changeApp = operate((n) => ({
  ...{ method: 'PATCH', path: '/v1/apps/acme', body: { supersede: n % (2 * clients) < clients } },
}))

export const clearSuppressions = operate(() => ({
  ...{ method: 'POST', path: '/v1/suppressions/clear', body: { reason: 'complaint' } },
}))

const disable = { method: 'PATCH', path: '/v1/apps/acme', body: { status: 'disabled' } } as const
/** How long a deletion may go on after the load has ended. */
const deletionMoreMs = 2000

const untilDeleted = async (place: Place, signal: AbortSignal, work: (end: AbortSignal) => Promise<string>) => {
  const end = new AbortController()
  signal.addEventListener('abort', () => setTimeout(() => end.abort(), deletionMoreMs))
  await ask(place, { ...disable, token: place.tokens.admin })
  const begunMs = performance.now()
  const answer = await work(end.signal).catch(() => 'not ended')
  return `${answer} after ${((performance.now() - begunMs) / 1000).toFixed(1)} s`
}

export const deleteByApi: Flood = (place, signal) =>
  untilDeleted(place, signal, async (end) => {
    const request = { method: 'DELETE', path: '/v1/apps/acme', token: place.tokens.admin, signal: end }
    return String((await ask(place, request)).status)
  })

export const deleteByCommand: Flood = (place, signal) =>
  untilDeleted(place, signal, async (end) => {
    await runCommand(place.subject, place.env, ['app', 'delete', 'acme', '--yes'], end)
    return 'ended'
  })

const junk = 'x'.repeat(128 * 1024)

/** Calls of 128 KiB that are signed with no secret of the app. */
export const postJunk: Flood = async ({ authHookSecrets, service }, signal) => {
  const callers = Array.from({ length: clients }, () => newCaller(portOf(service.authHooks), signal))
  const answers = await hammer(signal, { clients }, (n, client) => {
    const headers = {
      ...{ 'content-type': 'application/json', 'webhook-id': `msg_${n}` },
      'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
      'webhook-signature': `v1,${'A'.repeat(43)}=`,
    }
    return callers[client]?.(writePost('/supabase/acme', headers, junk)) ?? Promise.reject()
  })
  return `${authHookSecrets} secrets; ${describeOthers(answers)}`
}

const idleConnections = 120

/** A stranger's idle connections, while a provider calls 20 times a second, each time anew. */
export const keepIdle: Flood = async ({ service }, signal) => {
  const port = portOf(service.reports)
  const idle = Array.from({ length: idleConnections }, () => stayConnected(port, signal))
  await sleep(300)
  const headers = {
    authorization: `Basic ${Buffer.from(providerCredentials).toString('base64')}`,
    ...{ 'content-type': 'application/json', connection: 'close' },
  }
  const body = JSON.stringify({ reference: 'em_none', kind: 'confirmed' })
  const call = writePost('/reports/generic', headers, body)
  const answers = await hammer(signal, { clients: 1, everyMs: 50 }, () => newCaller(port, signal, '127.0.0.1')(call))
  await Promise.all(idle)
  return `${countFailed(answers, '200')} of the provider's calls failed`
}

const countFailed = (answers: Answers, expected: string) => {
  const all = Object.values(answers).reduce((sum, times) => sum + times, 0)
  return `${all - (answers[expected] ?? 0)} of ${all}`
}

/** Blank lines: they take the reader of reports longer than other text. */
const complaint = Buffer.from(`From: a@b.test\r\nSubject: x\r\n\r\n${'\r\n'.repeat(250_000 - 20)}`)

/** Mail of 500 KB to the address that complaints come to. */
export const giveComplaints: Flood = async ({ bouncePort: port }, signal) => {
  const order = { port, to: bounceAddress, message: complaint, signal }
  return describeOthers(await hammer(signal, { clients: 25 }, () => giveMail(order)))
}

const writeOptions = (console: string, from: string): string =>
  writePost(
    '/sign-in/passkey/options',
    { host: new URL(console).host, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': from },
    '',
  )

const networks = 4096
const attempts = { count: 20, everyMs: 100, afterMs: 2000 }

/** Sign-ins that one network of 48 bits begins, and those of people elsewhere. */
export const beginSignIns: Flood = async ({ service }, signal) => {
  const port = portOf(service.console)
  const callers = Array.from({ length: clients }, () => newCaller(port, signal))
  const flood = hammer(signal, { clients }, (n, client) => {
    const from = `2001:db8:1:${(n % networks).toString(16)}::1`
    return callers[client]?.(writeOptions(service.console, from)) ?? Promise.reject()
  })
  await sleep(attempts.afterMs)
  const call = newCaller(port, signal, '127.0.0.1')
  let answered = 0
  for (let n = 0; n < attempts.count; n++) {
    if ((await call(writeOptions(service.console, `203.0.${n}.7`))) === '200') answered += 1
    await sleep(attempts.everyMs)
  }
  return `${answered} of ${attempts.count} people could begin; the stranger: ${describeOthers(await flood)}`
}

/** The first sign-in loads the library that checks passkeys. */
export async function beginOne({ service }: Place): Promise<string> {
  const call = newCaller(portOf(service.console), signalAfter(5000), '127.0.0.1')
  return `first ${await call(writeOptions(service.console, '203.0.113.7'))}`
}

/** Sign-ins of many people, 100 a second. */
export const beginFewSignIns: Flood = async ({ service }, signal) => {
  const callers = Array.from({ length: clients }, () => newCaller(portOf(service.console), signal))
  const answers = await hammer(signal, { clients, everyMs: 80 }, (n, client) => {
    const from = `203.${n % 200}.${Math.floor(n / 200)}.7`
    return callers[client]?.(writeOptions(service.console, from)) ?? Promise.reject()
  })
  return describeOthers(answers)
}

export const nothing: Flood = async () => ''

/** Dead addresses after which the brake held at first. */
const brakedAt = 20
const dead = { count: 25, waitMs: 5000, stepMs: 200 }

/**
 * Before the load: acme sends to 25 dead addresses, then shop to one. Whether that one is suppressed is the
 * answer.
 */
export async function tripBrake(place: Place): Promise<string> {
  const post = (key: string, to: string) =>
    fetch(`${place.service.api}/v1/email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ to, type: 'magic_link', url: 'https://app.acme.test/auth?token=x' },
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      }),
    })
  const count = async (method: string, path: string, body?: object) => {
    const request = { method, path, token: place.tokens.admin, ...(body && { body }) }
    return (await ask(place, request)).document.items?.length ?? 0
  }
  const reach = async (wanted: number, read: () => Promise<number>) => {
    const endMs = performance.now() + dead.waitMs
    while (performance.now() < endMs) {
      if ((await read()) >= wanted) return true
      await sleep(dead.stepMs)
    }
    return false
  }
  for (let n = 0; n < dead.count; n++) await post(place.keys.acme, `dead${n}@example.com`)
  const haveFailed = (app: string, wanted: number) =>
    reach(wanted, () => count('GET', `/v1/emails?app=${app}&state=failed&limit=100`))
  if (!(await haveFailed('acme', dead.count))) return "acme's dead addresses were not refused in time"
  // Each is suppressed a moment after it failed, until a brake ends that.
  await reach(brakedAt, () => count('GET', '/v1/suppressions?app=acme&limit=100'))
  await post(place.keys.shop, 'dead999@example.com')
  if (!(await haveFailed('shop', 1))) return "shop's dead address was not refused in time"
  const body = { to: 'dead999@example.com' }
  const isSuppressed = await reach(1, () => count('POST', '/v1/suppressions/find', body))
  return `shop's dead address is suppressed: ${isSuppressed ? 'yes' : 'no'}`
}
