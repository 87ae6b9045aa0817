/** The cases of the benchmark `noise`: which table is stuffed, and what goes on beside the app that sends. */
import {
  beginFewSignIns,
  beginOne,
  beginSignIns,
  type Call,
  changeApp,
  clearSuppressions,
  deleteByApi,
  deleteByCommand,
  type Flood,
  giveComplaints,
  keepIdle,
  makeOnce,
  nothing,
  operate,
  postJunk,
  sendMail,
  sendRefused,
  sendToDead,
  tripBrake,
} from './floods.ts'
import type { Place } from './place.ts'
import { type StuffingName, stuffings } from './stuffings.ts'

export type Case = {
  readonly name: string
  /** The words of the table. */
  readonly title: string
  readonly stuffing: StuffingName | null
  readonly ms: number
  readonly flood: Flood
  /** Runs before the load, and returns a note. */
  readonly before?: (place: Place) => Promise<string>
  /** Whether it leaves nothing for the next case of the same stuffing, which then needs a copy. */
  readonly isLast?: boolean
}

const ms = 4000
/** For the operation on a stuffed table, because there are many. */
const shortMs = 3000

export const quiet: Case = { name: 'quiet', title: 'nothing', stuffing: null, ms, flood: nothing }

const get = (path: string) => () => ({ method: 'GET', path })
const post = (path: string, body: object) => () => ({ method: 'POST', path, body })

/** The use that acme makes of each table: calls of the management API, or another flood. */
const operations: Readonly<Partial<Record<StuffingName, readonly Call[] | Flood>>> = {
  suppression: [
    (n) => ({ method: 'POST', path: '/v1/suppressions', body: { to: `n${n}@example.com`, app: 'acme' } }),
    get('/v1/suppressions?app=acme&reason=complaint'),
  ],
  history: [
    get('/v1/emails?app=acme&state=expired'),
    get('/v1/emails?app=acme&type=organisation_invite'),
    post('/v1/emails/find', { to: 'nobody@example.com' }),
  ],
  refusal: sendRefused,
  webhook_message: [get('/v1/apps/acme/webhooks'), get('/v1/status')],
  delivery_key: [get('/v1/apps/acme/keys'), post('/v1/apps/acme/keys', {})],
  activity: [get('/v1/activity?app=acme'), get('/v1/activity?app=acme&step=minute')],
  usage_day: [get('/v1/apps/acme/usage'), get('/v1/status')],
  idempotency: sendMail,
  rate_bucket: sendMail,
  nonce: beginFewSignIns,
  queue: [
    get('/v1/queue'),
    post('/v1/emails/retry', { app: 'acme' }),
    (n) => ({ method: 'PATCH', path: '/v1/apps/acme', body: { supersede: n % 16 < 8 } }),
  ],
}

/** A service that runs for a while has made each call once, which prepares its statements and its checks. */
const withOperation = (name: StuffingName): Pick<Case, 'before' | 'flood'> => {
  const calls = operations[name] ?? nothing
  if (calls === beginFewSignIns) return { flood: calls, before: beginOne }
  return typeof calls === 'function' ? { flood: calls } : { flood: operate(...calls), before: makeOnce(...calls) }
}

const names = Object.keys(stuffings) as StuffingName[]
const isOld = (name: StuffingName) => name.startsWith('old ')

const cases: readonly Case[] = [
  { name: 'd', ms, title: 'junk at a hook with many secrets', stuffing: null, flood: postJunk },
  { name: 'e', ms, title: '120 idle connections for reports', stuffing: null, flood: keepIdle },
  { name: 'f', ms, title: '25 connections with complaints', stuffing: null, flood: giveComplaints },
  { name: 'g', ms, title: '25 dead addresses', stuffing: null, flood: sendToDead, before: tripBrake },
  {
    ...{ name: 'h', ms: 4500, title: 'sign-ins from one /48', stuffing: null, flood: beginSignIns },
    before: beginOne,
  },
  { name: 'a', ms, title: 'changes of an app, audit', stuffing: 'audit', flood: changeApp },
  { name: 'b', ms, title: 'clearing suppressions', stuffing: 'suppression', flood: clearSuppressions },
  ...names
    .filter((name) => !isOld(name) && name !== 'audit')
    .map((name) => ({
      ...{ name: `j-${name}`, ms: shortMs, title: `${name}, and its operation`, stuffing: name },
      ...withOperation(name),
    })),
  { name: 'c-api', ms, title: 'deleting the app', stuffing: 'suppression', flood: deleteByApi, isLast: true },
  {
    ...{ name: 'c-command', ms, title: 'deleting the app, by a command', stuffing: 'suppression' },
    ...{ flood: deleteByCommand, isLast: true },
  },
  ...names.filter(isOld).map((name) => ({
    ...{ name: `i-${name.slice('old '.length)}`, ms: shortMs, title: name, stuffing: name },
    ...withOperation(name),
  })),
]

/** Those that `--only` names, by a letter or a whole name; all without it. */
export function chooseCases(only: string | undefined): readonly Case[] {
  if (only === undefined) return cases
  const wanted = only.split(',')
  const unknown = wanted.find((word) => !cases.some((each) => isNamed(each, word)))
  if (unknown !== undefined) throw new Error(`unknown case "${unknown}": ${cases.map(({ name }) => name).join(', ')}`)
  return cases.filter((each) => wanted.some((word) => isNamed(each, word)))
}

const isNamed = ({ name }: Case, word: string) => name === word || name.split('-')[0] === word
