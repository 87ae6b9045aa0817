/** Runs one operation with an access: checks role, scope and input, in this order. */
import type { TSchema } from 'typebox'
import { isAtLeast } from '../domain/management-token.ts'
import type { Parsed } from '../domain/parsed.ts'
import type { Issue } from '../domain/request/rejection.ts'
import type { Access } from './access.ts'
import { checkSchema } from './check-schema.ts'
import { findTarget } from './find-target.ts'
import type { AnyOperation, Management } from './operation.ts'
import {
  type Answer,
  type CallInput,
  type OperationName,
  type OperationRunner,
  operationOf,
} from './operations.ts'
import { invalid, type Result, refuse } from './result.ts'

/** An operation's input before it is checked. */
export type RawInput = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
  readonly ifVersion?: number | undefined
  readonly ifAbsent?: boolean | undefined
}

export async function perform(
  management: Management,
  access: Access,
  name: OperationName,
  input: RawInput,
): Promise<Result<unknown>> {
  const operation = operationOf(name)
  if (!isAtLeast(access.role, operation.role))
    return refuse('not_permitted', `This needs the role ${operation.role}; yours is ${access.role}.`)
  const context = { ...management, access }
  const { params = {} } = input
  const target = await findTarget(operation.target, context, storable(params))
  if (!target.ok) return target
  const query = checkPart(operation.query, input.query ?? {}, 'query')
  const body = checkPart(operation.body, input.body, 'body')
  const issues = [query, body].flatMap((part) => (part.ok ? [] : part.issues))
  if (!query.ok || !body.ok) return invalid(issues)
  const { ifVersion, ifAbsent } = input
  const checked = { params: storable(params), query: query.value as object, body: body.value }
  const whole = { ...checked, ifVersion, ifAbsent } as Parameters<AnyOperation['run']>[1]
  return operation.run(context, whole, target.value)
}

function checkPart(schema: TSchema, value: unknown, part: 'query' | 'body'): Parsed<unknown> {
  const unstorable = findUnstorable(value, '')
  if (unstorable === null) return checkSchema(schema, value)
  const message = 'This text holds a NUL character or half of a surrogate pair; remove it.'
  return {
    ok: false,
    issues: [{ field: unstorable || part, code: 'malformed_text', message } satisfies Issue],
  }
}

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** The field whose text no database stores as it is; null if there is none. */
function findUnstorable(value: unknown, field: string): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : field
  if (typeof value !== 'object' || value === null) return null
  for (const [name, inner] of Object.entries(value)) {
    const path = field === '' ? name : `${field}.${name}`
    const found = isStorable(name) ? findUnstorable(inner, path) : field || 'body'
    if (found !== null) return found
  }
  return null
}

/** Names that cannot be stored name nothing. */
const storable = (params: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, isStorable(value) ? value : '']))

/** Runs operations in this process. */
export const newLocalRunner = (management: Management, access: Access): OperationRunner => ({
  call: <Name extends OperationName>(name: Name, input: CallInput<Name>) =>
    perform(management, access, name, input as RawInput) as Promise<Result<Answer<Name>>>,
})
