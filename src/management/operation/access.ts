/**
 * The role and scope with which an operation runs. Apps outside the scope are answered like apps that do not
 * exist.
 */

import type { AppId } from '../../domain/id.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import type { Role } from '../../domain/operator/management-token.ts'

/**
 * The role and the scope (some apps, or the whole service) that a token or the command line gives to an
 * actor.
 */
export type Access = {
  readonly actor: Actor
  readonly role: Role
  /** The apps that it may see and change; null: the whole service. */
  readonly apps: ReadonlySet<AppId> | null
  /** The time when its token expires (milliseconds since 1970); null: never. */
  readonly expiresAt: number | null
  /** The time when the person signed in; null unless it is a session. */
  readonly signedInAt: number | null
}

export const isServiceAdmin = ({ apps, role }: Access): boolean => apps === null && role === 'admin'

export const isInScope = ({ apps }: Access, app: AppId): boolean => apps === null || apps.has(app)

/** For commands on the server itself. Their user can open the database, so everything is allowed. */
export const localAccess = (user: string): Access => ({
  actor: { kind: 'local', id: null, name: `cli:${user}`, via: 'cli', requestId: null, ofService: true },
  role: 'admin',
  apps: null,
  expiresAt: null,
  signedInAt: null,
})
