/**
 * The JSON that operations answer with: a schema for each resource, and how it is made. Times are ISO 8601 in
 * UTC.
 */

import { type Static, type TNull, type TObject, type TProperties, type TSchema, type TUnion, Type } from 'typebox'
import type { App } from '../domain/app/app.ts'
import { type AppSettings, withDefaults } from '../domain/app/settings.ts'
import { authHookNames } from '../domain/auth-hooks/auth-hooks.ts'
import { emailStates, endReasons, usageEvents } from '../domain/delivery/states.ts'
import { type AuditEntry, actorKinds, actorVias, auditActions } from '../domain/operator/audit.ts'
import { roles } from '../domain/operator/management-token.ts'
import { isAlive, type NodeRecord, nodeFaults, nodeSilentMs } from '../domain/operator/node.ts'
import { emailTypes } from '../domain/request/email-kinds.ts'
import type { RefusedRequest } from '../domain/request/refused-request.ts'
import { refusals } from '../domain/request/rejection.ts'
import type { EmailRecord, KeyRecord, TokenRecord, UsageDay } from '../store/operator-store.ts'
import { appStatus, closed, orNull, type TTime, time } from './operation/schema.ts'
import { settingsFields } from './settings-schema.ts'

export const iso = (ms: number): string => new Date(ms).toISOString()
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

/** The store has times in milliseconds since 1970. */
type Stored<Schema extends TSchema> = Schema extends TTime
  ? number
  : Schema extends TUnion<[TTime, TNull]>
    ? number | null
    : Static<Schema>

/** The fields of the schema, in its order, and no others: a record may hold what nobody may see. */
export const present = <Fields extends TProperties>(
  { properties }: TObject<Fields>,
  record: { readonly [Name in keyof Fields]: Stored<Fields[Name]> },
): Static<TObject<Fields>> =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const value: unknown = record[name]
      return [name, typeof value === 'number' && isTime(schema) ? iso(value) : value]
    }),
  ) as Static<TObject<Fields>>

const isTime = (schema: TSchema): boolean => (Type.IsUnion(schema) ? schema.anyOf.some(isTime) : 'format' in schema)

const idPattern = (prefix: string) => `^${prefix}_[0-9a-z]{26}$`
export const idSchema = (prefix: string) => Type.String({ pattern: idPattern(prefix) })

/** A page of a list. `next` is the `cursor` of the next page. */
export const newPageSchema = <Item extends TSchema>(item: Item) =>
  closed({ items: Type.Array(item), next: orNull(Type.String()) })

const appFields = {
  id: idSchema('app'),
  slug: Type.String(),
  status: appStatus(),
  version: Type.Integer({ minimum: 1 }),
  createdAt: time(),
  updatedAt: time(),
}
export type AppResource = Static<TObject<typeof appFields>> & AppSettings
export const AppResource = Type.Unsafe<AppResource>(closed({ ...appFields, ...settingsFields }))

const AppHead = closed(appFields)
export const presentApp = (app: App): AppResource => ({ ...present(AppHead, app), ...withDefaults(app.settings) })

const keyFields = {
  id: idSchema('key'),
  app: idSchema('app'),
  test: Type.Boolean({ description: 'Whether it is a test key.' }),
  name: orNull(Type.String()),
  createdAt: time(),
  createdBy: Type.String(),
  expiresAt: orNull(time()),
  revokedAt: orNull(time()),
  lastUsedAt: orNull(time()),
  replaces: orNull(idSchema('key')),
  hook: orNull(
    Type.Enum([...authHookNames], {
      description: 'The auth server that posts with it; null for a key of the app.',
    }),
  ),
  networks: orNull(
    Type.Array(Type.String(), { description: 'The networks from which requests may use the key; null for all.' }),
  ),
}
export const KeyResource = closed(keyFields)
export type KeyResource = Static<typeof KeyResource>
/** `key` is the key itself, in the answer that makes it and nowhere else. */
export const NewKeyResource = closed({ ...keyFields, key: Type.String() })

export const presentKey = (key: KeyRecord): KeyResource =>
  present(KeyResource, { ...key, test: key.isTest, networks: key.networks && [...key.networks] })

export const emailFields = {
  id: idSchema('em'),
  app: idSchema('app'),
  key: orNull(
    Type.String({ pattern: idPattern('key'), description: 'Null for an email that an operator sent to try an app.' }),
  ),
  type: Type.Enum([...emailTypes]),
  state: Type.Enum([...emailStates]),
  attempts: Type.Integer(),
  lostLeases: Type.Integer(),
  acceptedAt: time(),
  expiresAt: time(),
  nextAttemptAt: orNull(time()),
  finishedAt: orNull(time()),
  reason: orNull(Type.Enum([...endReasons])),
  lastReply: orNull(Type.String()),
  test: Type.Boolean({ description: 'Whether it was sent with a test key; nothing of it is real.' }),
}
export const EmailResource = closed(emailFields)
export type EmailResource = Static<typeof EmailResource>

const findLastReply = (email: EmailRecord): string | null =>
  email.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text ?? null

export const presentEmail = (email: EmailRecord): EmailResource =>
  present(EmailResource, { ...email, test: email.isTest, lastReply: findLastReply(email) })

export const UsageResource = closed({
  day: Type.String({ format: 'date' }),
  accepted: Type.Integer(),
  delivered: Type.Integer(),
  failed: Type.Integer(),
  expired: Type.Integer(),
  cancelled: Type.Integer(),
  bounced: Type.Integer({ description: 'Counted as delivered, too, on the day of delivery.' }),
  complained: Type.Integer(),
  suppressed: Type.Integer({ description: 'Accepted and not sent, since the recipient is suppressed.' }),
  refused: Type.Record(Type.String(), Type.Integer()),
})
export type UsageResource = Static<typeof UsageResource>

export function presentUsage({ day, counts }: UsageDay): UsageResource {
  const isRefusal = ([event]: [string, number]) => !usageEvents.some((name) => name === event)
  const ends = Object.fromEntries(usageEvents.map((event) => [event, counts[event] ?? 0]))
  const refused = Object.fromEntries(Object.entries(counts).filter(isRefusal))
  // A cast, because `Object.fromEntries` forgets the names.
  return { day, ...(ends as Record<(typeof usageEvents)[number], number>), refused }
}

const requestId = () => Type.String({ pattern: '^req_[0-9a-z]{26}$' })

export const RefusalResource = closed({
  requestId: requestId(),
  at: time(),
  app: idSchema('app'),
  key: idSchema('key'),
  status: Type.Integer(),
  code: Type.String(),
  message: Type.String(),
  issues: Type.Array(Type.String(), { description: 'Each fault: its field and its code.' }),
  origin: orNull(Type.String({ description: 'Scheme, host and port of the link; its path is not kept.' })),
})
export type RefusalResource = Static<typeof RefusalResource>

export const presentRefusal = ({ at, issues, recipient: _, ...refusal }: RefusedRequest): RefusalResource => ({
  ...refusal,
  at: iso(at),
  ...refusals[refusal.code],
  issues: [...issues],
})

export const NodeResource = closed({
  id: idSchema('node'),
  machine: Type.String(),
  version: Type.String(),
  roles: Type.Array(Type.String()),
  startedAt: time(),
  seenAt: time(),
  alive: Type.Boolean({ description: `False if it has not been seen for ${nodeSilentMs / 1000} s.` }),
  relays: Type.Array(
    closed({
      name: Type.String(),
      certificateExpiresAt: orNull(time()),
      available: Type.Boolean(),
      tried: Type.Boolean({
        description: 'False until an attempt of this process has ended: before, it only seems available.',
      }),
      since: time(),
      reason: Type.String({ description: 'Why it is not available; empty if it is.' }),
      lastOutage: orNull(closed({ from: time(), until: time(), reason: Type.String() })),
      connections: closed({
        connecting: Type.Integer(),
        open: Type.Integer(),
        busy: Type.Integer(),
        allowed: Type.Integer({ description: 'How many connections may be open now.' }),
        max: Type.Integer(),
      }),
    }),
  ),
  faults: Type.Array(
    closed({
      what: Type.Enum([...nodeFaults], {
        description: 'The process cannot write its log (log), or cannot queue the emails of requests (queueing).',
      }),
      since: time(),
      reason: Type.String(),
    }),
  ),
})
export type NodeResource = Static<typeof NodeResource>

export const presentNode = (node: NodeRecord, nowMs: number): NodeResource => ({
  id: node.id,
  machine: node.machine,
  version: node.version,
  roles: [...node.roles],
  startedAt: iso(node.startedAt),
  seenAt: iso(node.seenAt),
  alive: isAlive(node, nowMs),
  relays: node.relays.map(({ certificateExpiresAt, lastOutage, since, ...relay }) => ({
    ...relay,
    certificateExpiresAt: isoOrNull(certificateExpiresAt),
    since: iso(since),
    lastOutage: lastOutage && { ...lastOutage, from: iso(lastOutage.from), until: iso(lastOutage.until) },
  })),
  faults: node.faults.map((fault) => ({ ...fault, since: iso(fault.since) })),
})

const tokenFields = {
  id: idSchema('tok'),
  name: Type.String(),
  role: Type.Enum([...roles]),
  apps: orNull(Type.Array(idSchema('app'))),
  createdAt: time(),
  createdBy: Type.String(),
  expiresAt: time(),
  revokedAt: orNull(time()),
  lastUsedAt: orNull(time()),
}
export const TokenResource = closed(tokenFields)
export type TokenResource = Static<typeof TokenResource>
/** `token` is the token itself, in the answer that makes it and nowhere else. */
export const NewTokenResource = closed({ ...tokenFields, token: Type.String() })

export const presentToken = ({ apps, ...token }: TokenRecord): TokenResource =>
  present(TokenResource, { ...token, apps: apps && [...apps] })

const Values = orNull(Type.Record(Type.String(), Type.Unknown()))
export const AuditResource = closed({
  id: idSchema('au'),
  at: time(),
  actor: closed({
    kind: Type.Enum([...actorKinds]),
    id: orNull(Type.String({ description: 'The id of a token (tok_…) or a person (pe_…).' })),
    name: Type.String(),
  }),
  via: Type.Enum([...actorVias]),
  action: Type.Enum([...auditActions]),
  app: orNull(idSchema('app')),
  target: Type.String(),
  before: Values,
  after: Values,
  requestId: orNull(Type.String()),
})
export type AuditResource = Static<typeof AuditResource>

export const presentAudit = ({ actor, ...entry }: AuditEntry): AuditResource => {
  const { kind, id, name, via, requestId } = actor
  return present(AuditResource, { ...entry, actor: { kind, id, name }, via, requestId })
}

export const FindingResource = closed({
  check: Type.String(),
  ok: Type.Boolean(),
  detail: Type.String(),
  isSkipped: Type.Optional(Type.Literal(true, { description: 'It was not checked; the detail says why.' })),
})
