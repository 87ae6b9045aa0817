/** The caller of an operation, and what it may do. Apps outside its scope are answered like apps that do not exist. */
import type { Author } from '../domain/audit.ts'
import type { AppId } from '../domain/id.ts'
import type { Role } from '../domain/management-token.ts'

export type Caller = {
  readonly author: Author
  readonly role: Role
  /** The apps that it may see and change; null: the whole service. */
  readonly apps: ReadonlySet<AppId> | null
  /** When its token expires (milliseconds since 1970); null: never. */
  readonly expiresAt: number | null
}

export const isInScope = ({ apps }: Caller, app: AppId): boolean => apps === null || apps.has(app)

/** The caller of a command on the server itself. Such a user can open the database, so everything is allowed. */
export const localCaller = (user: string): Caller => ({
  author: { kind: 'local', id: null, name: `cli:${user}`, via: 'cli', requestId: null },
  role: 'admin',
  apps: null,
  expiresAt: null,
})
