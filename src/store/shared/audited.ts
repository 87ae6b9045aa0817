/** The audit entries of changes, which both engines write. */
import type { App } from '../../domain/app/app.ts'
import { type Action, type AuditAction, differences } from '../../domain/audit.ts'
import type { EmailState } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { KeyRecord, TokenRecord } from '../operator-store.ts'

type AppFacts = Pick<App, 'status' | 'settings'>

const factsOfApp = ({ status, settings }: AppFacts) => ({ status, ...settings })

const factsOfKey = ({ name, expiresAt, revokedAt }: KeyRecord) => ({
  name,
  expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  revoked: revokedAt !== null,
})

export const appCreated = (app: App): Action => ({
  action: 'app.create',
  app: app.id,
  target: app.slug,
  before: null,
  after: factsOfApp(app),
})

/** Null if the app stays as it is. */
export function appUpdated(app: App, next: AppFacts): Action | null {
  const changed = differences(factsOfApp(app), factsOfApp(next))
  return changed && { action: 'app.update', app: app.id, target: app.slug, ...changed }
}

/** Whether more than the status of an app changes. */
export const changesSettings = ({ after }: Action): boolean =>
  Object.keys(after ?? {}).some((name) => name !== 'status')

/**
 * How much changes of an app have added to the audit since a time. `mark` writes the placeholders: app, floor of the ids,
 * time. The ids bound what is read; the time decides, because ids run ahead of a clock that was set back.
 */
export const auditedStatement = (prefix: string, mark: (n: number) => string): string =>
  `select coalesce(sum(length(cast(before as text)) + length(cast(after as text))), 0) as characters from ${prefix}audit
   where app_id = ${mark(1)} and audit_id >= ${mark(2)} and at >= ${mark(3)} and action = 'app.update'`

export const appDeleted = (app: App): Action => ({
  action: 'app.delete',
  app: app.id,
  target: app.slug,
  before: factsOfApp(app),
  after: null,
})

export const keyCreated = (key: KeyRecord): Action => ({
  action: 'key.create',
  app: key.app,
  target: key.id,
  before: null,
  after: factsOfKey(key),
})

/** Null if the key stays as it is. */
export function keyChanged(
  action: Extract<AuditAction, 'key.update' | 'key.revoke'>,
  key: KeyRecord,
  next: KeyRecord,
): Action | null {
  const changed = differences(factsOfKey(key), factsOfKey(next))
  return changed && { action, app: key.app, target: key.id, ...changed }
}

/** @param made the new key; @param end when the old one ends (milliseconds since 1970) */
export const keyReplaced = (old: KeyRecord, made: KeyRecord, end: number): Action => ({
  action: 'key.replace',
  app: old.app,
  target: old.id,
  before: factsOfKey(old),
  after: { ...factsOfKey({ ...old, expiresAt: end }), replacedBy: made.id },
})

export const tokenCreated = ({ id, name, role, apps, expiresAt }: TokenRecord): Action => ({
  action: 'token.create',
  app: null,
  target: id,
  before: null,
  after: { name, role, apps, expiresAt: new Date(expiresAt).toISOString() },
})

export const tokenRevoked = ({ id }: TokenRecord): Action => ({
  action: 'token.revoke',
  app: null,
  target: id,
  before: { revoked: false },
  after: { revoked: true },
})

export const emailChanged = (
  action: Extract<AuditAction, 'email.retry' | 'email.cancel'>,
  email: { readonly id: EmailId; readonly app: AppId; readonly state: EmailState },
): Action => ({
  action,
  app: email.app,
  target: email.id,
  before: { state: email.state },
  after: { state: action === 'email.retry' ? 'queued' : 'cancelled' },
})

/** @param apps null: all apps */
export const allRetried = (apps: readonly AppId[] | null): Action => ({
  action: 'email.retry_all',
  app: apps?.length === 1 ? (apps[0] ?? null) : null,
  target: apps === null ? 'all' : apps.join(' '),
  before: null,
  after: null,
})
