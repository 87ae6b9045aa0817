/** The audit: one entry for each change that an operator makes. It holds no secret, and nothing of an email's content. */
import type { AppId, AuditId, TokenId } from './id.ts'

/** The person or program that makes a change. */
export type Actor = {
  /** `local`: a user of the command line on the server. `token`: the holder of a management token. `service`: dev mode. */
  readonly kind: 'local' | 'token' | 'service'
  readonly id: TokenId | null
  readonly name: string
  readonly via: 'cli' | 'api' | 'service'
  /** The request of the management API. */
  readonly requestId: string | null
}

export const auditActions = [
  'app.create',
  'app.update',
  'app.delete',
  'app.test_email',
  'key.create',
  'key.update',
  'key.replace',
  'key.revoke',
  'email.find',
  'email.retry',
  'email.retry_all',
  'email.cancel',
  'token.create',
  'token.revoke',
  'checks.run',
] as const
export type AuditAction = (typeof auditActions)[number]

type Values = Readonly<Record<string, unknown>>

/** The contents of an audit entry. */
export type Action = {
  readonly action: AuditAction
  readonly app: AppId | null
  /** The id of what was changed, or its slug. */
  readonly target: string
  /** The values that differ, before and after; null where there was nothing. */
  readonly before: Values | null
  readonly after: Values | null
}

export type AuditEntry = Action & { readonly id: AuditId; readonly at: number; readonly actor: Actor }

/** The values that differ between two states. Null if none does. */
export function differences(before: Values, after: Values): Pick<Action, 'before' | 'after'> | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  if (changed.length === 0) return null
  const pick = (values: Values) =>
    Object.fromEntries(changed.filter((name) => name in values).map((name) => [name, values[name]]))
  return { before: pick(before), after: pick(after) }
}
