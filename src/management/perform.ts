/**
 * Runs one operation with an access. Checks, in this order: role, scope, target, input, fresh sign-in, and
 * room in the audit.
 */
import type { TSchema } from 'typebox'
import { auditedPerDayMax } from '../domain/bounds.ts'
import type { AppId } from '../domain/id.ts'
import { isAtLeast } from '../domain/operator/management-token.ts'
import { isFreshSignIn } from '../domain/operator/sign-in.ts'
import type { Issue, Parsed } from '../domain/parsed.ts'
import type { Management } from './context.ts'
import { type Access, isServiceAdmin } from './operation/access.ts'
import { checkSchema } from './operation/check-schema.ts'
import { completeIds } from './operation/complete-ids.ts'
import { chooseApps, findTarget } from './operation/find-target.ts'
import type { AnyOperation, Context, TargetKind, Targets } from './operation/operation.ts'
import { done, fail, invalid, type OperationError, type Result } from './operation/result.ts'
import { type Answer, type CallInput, findOperation, type OperationName, type OperationRunner } from './operations.ts'

/** An operation's input before it is checked. */
export type RawInput = {
  readonly query?: unknown
  readonly body?: unknown
  readonly ifVersion?: number | undefined
  readonly ifAbsent?: boolean | undefined
}

type Params = Readonly<Record<string, string>>
type AnyInput = Parameters<AnyOperation['run']>[1]

/**
 * @param read reads the input of the request; called only if the access may run the operation on this target
 */
export async function perform(
  management: Management,
  access: Access,
  call: {
    readonly name: OperationName
    readonly params: Params
    readonly read: () => Result<RawInput>
    readonly hasLeft?: () => boolean
  },
): Promise<Result<unknown>> {
  const operation = findOperation(call.name)
  const { hasLeft = () => false } = call
  const context = { ...management, access, hasLeft }
  const forbidden = refuseRole(operation, access)
  if (forbidden !== null) return forbidden
  const params = await completeIds(context, storable(call.params))
  const target = await findTarget(operation.target, context, params)
  if (!target.ok) return target
  const input = call.read()
  if (!input.ok) return input
  const query = checkPart(operation.query, input.value.query ?? {}, 'query')
  const body = checkPart(operation.body, input.value.body, 'body')
  const issues = [query, body].flatMap((part) => (part.ok ? [] : part.issues))
  if (!query.ok || !body.ok) return invalid(issues)
  const { ifVersion, ifAbsent } = input.value
  const filters = await completeIds(context, query.value as Record<string, unknown>)
  const whole = { params, query: filters, body: body.value, ifVersion, ifAbsent } as AnyInput
  // A dry run changes nothing.
  const isDry = (query.value as { dryRun?: boolean } | undefined)?.dryRun === true
  const refused = isDry
    ? null
    : ((operation.outlives(whole, target.value) ? refuseOldSession(context) : null) ??
      (await refuseFullAudit(operation, context, { input: whole, target: target.value })))
  if (refused !== null) return refused
  const run = () => operation.run(context, whole, target.value)
  return operation.costly ? runAlone([call.name, access.actor.id, findOwner(target.value)].join(' '), run) : run()
}

/** The costly calls that run in this process, by their operation, actor and app. */
const running = new Set<string>()

async function runAlone<T>(name: string, run: () => Promise<Result<T>> | Result<T>): Promise<Result<T>> {
  if (running.has(name)) return { ok: false, error: busy }
  running.add(name)
  try {
    return await run()
  } finally {
    running.delete(name)
  }
}

const busy: OperationError = {
  code: 'too_many_requests',
  message: 'Your last request of this kind is still running: wait for its answer.',
  retryAfterS: 5,
}

/** A session may do what outlives it for an hour after its person signed in. */
function refuseOldSession({ access, store }: Context): Result<never> | null {
  if (access.signedInAt === null || isFreshSignIn(access.signedInAt, store.now())) return null
  return fail('sign_in_again', 'Sign out and in again first: this needs a sign-in within the last hour.')
}

/**
 * Changes fill the audit, which is kept for a long time: each app, and each actor, has a bound for a day.
 * Admins of the whole service have none, nor has what takes access away: it works once for each access that
 * was given.
 */
async function refuseFullAudit(
  { audited, takesAway }: AnyOperation,
  context: Context,
  { input, target }: { readonly input: AnyInput; readonly target: Targets[TargetKind] },
): Promise<Result<never> | null> {
  const { access, store } = context
  if (!audited || isServiceAdmin(access) || takesAway(input)) return null
  const app = access.apps === null ? null : (findOwner(target) ?? (await findNamedApp(context, input)))
  const owners = [access.actor.id, app].filter((owner) => owner !== null)
  if ((await store.readAuditedToday(owners)) < auditedPerDayMax) return null
  return fail(
    'changed_too_often',
    'The audit is full for today, for this app or for you, so this change was not made. Try again after midnight (UTC), or ask an admin of the whole service. You can still take access away: revoke keys, or disable the app.',
  )
}

/**
 * The app that an operation without a target changes: the one that its body names, or the only one there is.
 */
async function findNamedApp(context: Context, { body }: AnyInput): Promise<AppId | null> {
  const apps = await chooseApps(context, (body as { readonly app?: string } | undefined)?.app)
  return apps.ok && apps.value?.length === 1 ? (apps.value[0] ?? null) : null
}

/** The app of a target. */
function findOwner(target: Targets[TargetKind]): AppId | null {
  if (target === null) return null
  return 'app' in target ? target.app : (target.id as AppId)
}

function refuseRole({ role, wholeService }: AnyOperation, access: Access): Result<never> | null {
  if (!isAtLeast(access.role, role))
    return fail('not_permitted', `This needs the role ${role}; yours is ${access.role}.`)
  if (wholeService && access.apps !== null)
    return fail('not_permitted', 'This needs a token for the whole service; yours is for some apps.')
  return null
}

function checkPart(schema: TSchema, value: unknown, part: 'query' | 'body'): Parsed<unknown> {
  const checked = checkSchema(schema, value)
  if (!checked.ok) return checked
  const unstorable = findUnstorable(value, '')
  if (unstorable === null) return checked
  const message = 'This is nested too deeply, or holds a NUL character or half of a surrogate pair.'
  return {
    ok: false,
    issues: [{ field: unstorable || part, code: 'malformed_text', message } satisfies Issue],
  }
}

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Deeper than any schema. */
const depthMax = 10

/** The field that no database stores as it is; null if there is none. */
function findUnstorable(value: unknown, field: string, depth = 0): string | null {
  if (depth > depthMax) return field
  if (typeof value === 'string') return isStorable(value) ? null : field
  if (typeof value !== 'object' || value === null) return null
  for (const [name, inner] of Object.entries(value)) {
    const path = field === '' ? name : `${field}.${name}`
    const found = isStorable(name) ? findUnstorable(inner, path, depth + 1) : field || 'body'
    if (found !== null) return found
  }
  return null
}

/** Names that cannot be stored name nothing. */
const storable = (params: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, isStorable(value) ? value : '']))

/** Runs operations in this process. */
export const newLocalRunner = (management: Management, access: Access): OperationRunner => ({
  call: <Name extends OperationName>(name: Name, input: CallInput<Name>) => {
    const { params = {}, ...raw } = input as RawInput & { params?: Params }
    return perform(management, access, { name, params, read: () => done(raw) }) as Promise<Result<Answer<Name>>>
  },
})
