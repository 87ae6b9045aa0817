/**
 * An operation: one thing that an operator can do. The management API, the local and the remote command line
 * read the same definitions, so an operation has one address, one least role, one schema for each value and
 * one implementation.
 */
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { Role } from '../../domain/operator/management-token.ts'
import type { RefusedRequest } from '../../domain/request/refused-request.ts'
import type { EmailRecord, KeyRecord } from '../../store/operator-store.ts'
import type { SuppressionRecord } from '../../store/report-store.ts'
import type { Management } from '../context.ts'
import type { Access } from './access.ts'
import type { ErrorCode, Result } from './result.ts'
import { closed } from './schema.ts'

/**
 * The target of an operation. It is found, and checked against the scope of the access, before the operation
 * runs. `none`: the operation itself keeps to the apps of the access.
 */
export type Targets = {
  readonly none: null
  readonly app: App
  readonly key: KeyRecord
  readonly email: EmailRecord
  readonly refusal: RefusedRequest
  readonly suppression: SuppressionRecord
}
export type TargetKind = keyof Targets

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never

/** The target that a path names: `app` for `/v1/apps/{app}/keys`. */
type TargetIn<Path extends string> = [Extract<ParamNames<Path>, TargetKind>] extends [never]
  ? 'none'
  : Extract<ParamNames<Path>, TargetKind>

const targetKinds: readonly TargetKind[] = ['app', 'key', 'email', 'suppression']
const targetIn = (path: string): TargetKind => targetKinds.find((kind) => path.includes(`{${kind}}`)) ?? 'none'

export type Input<Path extends string, Query extends TSchema, Body extends TSchema> = {
  /** The names in braces of the path. */
  readonly params: Readonly<Record<ParamNames<Path>, string>>
  readonly query: Static<Query>
  readonly body: Static<Body>
  /** From `If-Match`: act only on this version. */
  readonly ifVersion?: number | undefined
  /** From `If-None-Match: *`: act only if there is nothing yet. */
  readonly ifAbsent?: boolean | undefined
}

export type Context = Management & {
  readonly access: Access
  /** Whether nobody waits for the answer any more. */
  readonly hasLeft: () => boolean
}

type Definition<
  Path extends string,
  Kind extends TargetKind,
  Query extends TSchema,
  Body extends TSchema,
  Answer extends TSchema,
> = {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  readonly path: Path
  /** The least role that may. */
  readonly role: Role
  /** Derived from the path unless it is given. */
  readonly target: Kind
  /** Only an access to the whole service may, not one to some apps. */
  readonly wholeService: boolean
  /** One sentence for the document of the API. */
  readonly summary: string
  readonly query: Query
  /** `noBody` for an operation without one. */
  readonly body: Body
  readonly answer: Answer
  /** It answers 201 if it makes something. */
  readonly creates: boolean
  /** The answer is an app: it has an `ETag`, and the request may have `If-Match`. */
  readonly versioned: boolean
  /** Errors besides those that every operation has. */
  readonly errors: readonly ErrorCode[]
  /**
   * Whether its effect outlives the session that asks for it (access, a secret), or sends data elsewhere.
   * Then a session must be fresh: a stolen one must not become more. A change that only takes away does not.
   */
  outlives(input: Input<Path, Query, Body>, target: Targets[Kind]): boolean
  /** Whether it only takes access away, which the bound of the audit never refuses. */
  takesAway(input: Input<Path, Query, Body>): boolean
  /** Whether it keeps the store or DNS busy for seconds: each actor has one at a time, on each app. */
  readonly costly: boolean
  /** Whether it leaves an audit entry: all that change something do, and searches by address. */
  readonly audited: boolean
  /** A method, so that each operation also is an `AnyOperation`; `perform` has checked what it passes. */
  run(
    context: Context,
    input: Input<Path, Query, Body>,
    target: Targets[Kind],
  ): Promise<Result<Static<Answer>>> | Result<Static<Answer>>
}

/** The usual answers of `outlives` and `takesAway`. */
export const always = (): boolean => true
export const never = (): boolean => false

/** Operations that need an admin of the whole service. */
export const forAdmins = { role: 'admin', wholeService: true } as const

const noQuery = closed({})
export const noBody = Type.Undefined()
export type NoQuery = typeof noQuery
export type NoBody = typeof noBody

/** Any operation, for code that treats all alike. */
export type AnyOperation = Definition<string, TargetKind, TObject, TSchema, TSchema>

type Needed = 'method' | 'path' | 'role' | 'summary' | 'answer' | 'run'

/** An operation without a query or a body has the types `NoQuery` and `NoBody`. */
export function operation<
  const Path extends `/v1/${string}`,
  Answer extends TSchema,
  Kind extends TargetKind = TargetIn<Path>,
  Query extends TSchema = NoQuery,
  Body extends TSchema = NoBody,
>(
  definition: Partial<Definition<Path, Kind, Query, Body, Answer>> &
    Pick<Definition<Path, Kind, Query, Body, Answer>, Needed>,
): Definition<Path, Kind, Query, Body, Answer>
export function operation(definition: Partial<AnyOperation> & Pick<AnyOperation, Needed>): AnyOperation {
  return {
    query: noQuery,
    body: noBody,
    target: targetIn(definition.path),
    creates: false,
    wholeService: false,
    versioned: false,
    errors: [],
    outlives: never,
    takesAway: never,
    costly: false,
    audited: definition.method !== 'GET',
    ...definition,
  }
}
