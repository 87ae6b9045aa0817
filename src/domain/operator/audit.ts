/** The audit: an entry for each change by an operator. It has no secret, and no content of an email. */
import type { AppId, AuditId, PersonId, TokenId } from '../id.ts'

/** Before the name of a recipient, in entries about an address and in answers. */
export const recipientPrefix = 'rc_'

/** Names of local actors begin with `cli:`, ids of people with `pe_`: no other actor may look like one. */
export const isReservedName = (name: string): boolean => /^(cli:|pe_)/.test(name)

export const actorKinds = ['local', 'token', 'person', 'service'] as const
export const actorVias = ['cli', 'api', 'console', 'service'] as const

/** The person or program that makes a change. */
export type Actor = {
  /**
   * `local`: a user of the command line on the server. `token`: the holder of a management token. `person`:
   * somebody who is signed in to the console. `service`: dev mode.
   */
  readonly kind: (typeof actorKinds)[number]
  readonly id: TokenId | PersonId | null
  readonly name: string
  readonly via: (typeof actorVias)[number]
  /** The request of the management API or the console. */
  readonly requestId: string | null
  /** Whether its access is to the whole service: then its entries fill no app's share of the audit. */
  readonly ofService?: boolean
}

/** Each action, and the group of actions that people look for together. */
const groupsOfActions = {
  'app.create': 'settings',
  'app.update': 'settings',
  'app.delete': 'settings',
  'app.test_email': 'emails',
  'key.create': 'settings',
  'key.update': 'settings',
  'key.replace': 'settings',
  'key.revoke': 'settings',
  'email.find': 'searches',
  'email.retry': 'emails',
  'email.retry_all': 'emails',
  'email.cancel': 'emails',
  'recipient.forget': 'emails',
  'report.read': 'emails',
  'suppression.find': 'searches',
  'suppression.add': 'suppressions',
  'suppression.remove': 'suppressions',
  'suppression.clear': 'suppressions',
  'domain.check': 'searches',
  'domain.add_key': 'settings',
  'domain.activate_key': 'settings',
  'domain.remove_key': 'settings',
  'transport.put': 'settings',
  'transport.delete': 'settings',
  'webhook.secret': 'settings',
  'webhook.test': 'emails',
  'webhook.send': 'emails',
  'list.export': 'searches',
  'token.create': 'access',
  'token.revoke': 'access',
  'person.create': 'access',
  'person.update': 'access',
  'sign_in.code': 'access',
  'sign_in.end_code': 'access',
  'session.create': 'sign_ins',
  'session.end': 'sign_ins',
  'passkey.add': 'access',
  'passkey.remove': 'access',
  'checks.run': 'searches',
} as const
export type AuditAction = keyof typeof groupsOfActions
export const auditActions = Object.keys(groupsOfActions) as AuditAction[]

export const auditGroups = ['settings', 'emails', 'suppressions', 'access', 'sign_ins', 'searches'] as const
export type AuditGroup = (typeof auditGroups)[number]

export const actionsIn = (group: AuditGroup): AuditAction[] =>
  auditActions.filter((action) => groupsOfActions[action] === group)

type Values = Readonly<Record<string, unknown>>

/** The contents of an audit entry. */
export type Action = {
  readonly action: AuditAction
  readonly app: AppId | null
  /** The id of what was changed, or its slug. */
  readonly target: string
  /**
   * The values that differ, before and after; null where there was nothing. A list holds the entries that the
   * other lacks.
   */
  readonly before: Values | null
  readonly after: Values | null
}

export type AuditEntry = Action & { readonly id: AuditId; readonly at: number; readonly actor: Actor }

/** The values that differ between two states. Null if none does. */
export function differences(before: Values, after: Values): Pick<Action, 'before' | 'after'> | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  if (changed.length === 0) return null
  const pick = (values: Values, others: Values) =>
    Object.fromEntries(
      changed.filter((name) => name in values).map((name) => [name, entriesMissing(values[name], others[name])]),
    )
  return { before: pick(before, after), after: pick(after, before) }
}

/** The entries that the other list lacks; any other value, and a list in another order, as it is. */
function entriesMissing(value: unknown, other: unknown): unknown {
  if (!Array.isArray(value) || !Array.isArray(other)) return value
  const isIn = (entries: unknown[]) => (entry: unknown) => entries.includes(entry)
  if (value.every(isIn(other)) && other.every(isIn(value))) return value
  return value.filter((entry) => !other.includes(entry))
}
