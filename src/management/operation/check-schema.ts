/** Checks a value against a schema. Each fault is an issue that names its field. */
import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { counted, formatCount } from '../../domain/counts.ts'
import { type Issue, type Parsed, parsed } from '../../domain/parsed.ts'

const validators = new WeakMap<TSchema, Validator>()

function compileValidator(schema: TSchema): Validator {
  const known = validators.get(schema)
  if (known !== undefined) return known
  const made = Compile(schema) as Validator
  validators.set(schema, made)
  return made
}

type Fault = ReturnType<Validator['Errors']>[number]

export function checkSchema<Schema extends TSchema>(schema: Schema, value: unknown): Parsed<Static<Schema>> {
  const validator = compileValidator(schema)
  if (validator.Check(value)) return parsed(value as Static<Schema>)
  return { ok: false, issues: toIssues(validator.Errors(value)) }
}

function toIssues(faults: readonly Fault[]): Issue[] {
  const issues = new Map<string, Issue>()
  const add = (field: string, code: string, message: string) => {
    if (!issues.has(field)) issues.set(field, { field, code, message })
  }
  for (const { keyword, instancePath, params } of withoutBranches(faults).toSorted(unknownFirst)) {
    const path = instancePath.slice(1).replaceAll('/', '.')
    const inner = (name: string) => (path === '' ? name : `${path}.${name}`)
    const values = params as Record<string, unknown>
    if (keyword === 'required') {
      for (const name of values.requiredProperties as string[]) add(inner(name), 'required', 'This field is missing.')
    } else if (keyword === 'additionalProperties') {
      for (const name of values.additionalProperties as string[])
        add(inner(name), 'unknown_field', 'There is no such field here; remove it.')
    } else add(path || 'body', 'malformed_value', describe(keyword, values))
  }
  return [...issues.values()]
}

/** If a value may be null, the faults of its other branch say what is wrong. */
function withoutBranches(faults: readonly Fault[]): readonly Fault[] {
  const isBranch = ({ keyword, params }: Fault): boolean =>
    keyword === 'anyOf' || (keyword === 'type' && (params as { type?: unknown }).type === 'null')
  const others = faults.filter((fault) => !isBranch(fault))
  const isExplained = ({ instancePath }: Fault): boolean =>
    others.some((other) => `${other.instancePath}/`.startsWith(`${instancePath}/`))
  return faults.filter((fault) => !isBranch(fault) || !isExplained(fault))
}

/** An unknown field has two faults, of which `additionalProperties` says more. */
const unknownFirst = (a: Fault, b: Fault): number =>
  Number(b.keyword === 'additionalProperties') - Number(a.keyword === 'additionalProperties')

function describe(keyword: string, { type, limit, allowedValues, pattern }: Record<string, unknown>): string {
  const messages: Readonly<Record<string, string>> = {
    type: `This must be ${type === 'array' ? 'a list' : type === 'integer' ? 'a whole number' : `of type ${type}`}.`,
    enum: Array.isArray(allowedValues) ? `This must be one of ${allowedValues.join(', ')}.` : '',
    minLength:
      limit === 1 ? 'This must not be empty.' : `This must have at least ${counted(Number(limit), 'character')}.`,
    maxLength: `This may have at most ${counted(Number(limit), 'character')}.`,
    minimum: `This must be at least ${formatCount(Number(limit))}.`,
    maximum: `This may be at most ${formatCount(Number(limit))}.`,
    minItems: `This needs at least ${counted(Number(limit), 'entry', 'entries')}.`,
    maxItems: `This may have at most ${counted(Number(limit), 'entry', 'entries')}.`,
    format: 'This must be a time with its zone, such as 2027-01-31T00:00:00Z.',
    pattern: `This does not match the pattern in the API document (${pattern}).`,
  }
  return messages[keyword] || 'This does not match the API document (/v1/openapi.json).'
}
