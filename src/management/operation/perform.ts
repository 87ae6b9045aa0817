/** Runs one operation with an access: checks role, scope, target and input, in this order. */
import type { TSchema } from 'typebox'
import { isAtLeast } from '../../domain/operator/management-token.ts'
import type { Parsed } from '../../domain/parsed.ts'
import type { Issue } from '../../domain/request/rejection.ts'
import {
  type Answer,
  type CallInput,
  findOperation,
  type OperationName,
  type OperationRunner,
} from '../operations.ts'
import type { Access } from './access.ts'
import { checkSchema } from './check-schema.ts'
import { findTarget } from './find-target.ts'
import type { AnyOperation, Context, Management, TargetKind, Targets } from './operation.ts'
import { done, fail, invalid, type Result } from './result.ts'

/** An operation's input before it is checked. */
export type RawInput = {
  readonly query?: unknown
  readonly body?: unknown
  readonly ifVersion?: number | undefined
  readonly ifAbsent?: boolean | undefined
}

type Params = Readonly<Record<string, string>>

/**
 * @param read reads the input of the request; called only if the access may run the operation on this target
 */
export async function perform(
  management: Management,
  access: Access,
  call: { readonly name: OperationName; readonly params: Params; readonly read: () => Result<RawInput> },
): Promise<Result<unknown>> {
  const operation = findOperation(call.name)
  const context = { ...management, access }
  const params = storable(call.params)
  const target = await findAllowed(operation, context, params)
  if (!target.ok) return target
  const input = call.read()
  if (!input.ok) return input
  const query = checkPart(operation.query, input.value.query ?? {}, 'query')
  const body = checkPart(operation.body, input.value.body, 'body')
  const issues = [query, body].flatMap((part) => (part.ok ? [] : part.issues))
  if (!query.ok || !body.ok) return invalid(issues)
  const { ifVersion, ifAbsent } = input.value
  const whole = { params, query: query.value, body: body.value, ifVersion, ifAbsent }
  return operation.run(context, whole as Parameters<AnyOperation['run']>[1], target.value)
}

/** The target of the operation, if the access may run the operation on it. */
async function findAllowed(
  { role, wholeService, target }: AnyOperation,
  context: Context,
  params: Params,
): Promise<Result<Targets[TargetKind]>> {
  const { access } = context
  if (!isAtLeast(access.role, role))
    return fail('not_permitted', `This needs the role ${role}; yours is ${access.role}.`)
  if (wholeService && access.apps !== null)
    return fail('not_permitted', 'This needs a token for the whole service; yours is for some apps.')
  return findTarget(target, context, params)
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
    return perform(management, access, { name, params, read: () => done(raw) }) as Promise<
      Result<Answer<Name>>
    >
  },
})
