/** Generated values for a schema: valid ones, and ones with exactly one fault. */
import fc from 'fast-check'

/** The parts of JSON Schema that the management API uses. */
export type Schema = {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly examples?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxLength?: number
}

export function validFor(schema: Schema): fc.Arbitrary<unknown> {
  const { anyOf, enum: values, examples, items, minimum = 0, maximum = 1000, type } = schema
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(validFor))
  if (values !== undefined) return fc.constantFrom(...values)
  if (examples !== undefined) return fc.constantFrom(...examples)
  switch (type) {
    case 'object':
      return validObject(schema)
    case 'array':
      return fc.uniqueArray(validFor(items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: 3,
        comparator: 'SameValueZero',
      })
    case 'string':
      return fc.string({ maxLength: Math.min(schema.maxLength ?? 20, 20) })
    case 'integer':
      return fc.integer({ min: minimum, max: Math.min(maximum, minimum + 1000) })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue()
  }
}

function validObject({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, validFor(each)]))
  return fc.record(fields, { requiredKeys: required.filter((name) => name in fields) })
}

/** A value with one fault, and the name of the field that has it. Null for a schema that takes anything. */
export function faultyFor(schema: Schema): fc.Arbitrary<{ value: unknown; field: string }> | null {
  const { properties = {}, required = [] } = schema
  const breakable = Object.entries(properties).filter(([, each]) => each.type !== undefined || each.anyOf)
  const wrong = breakable.map(([name, each]) =>
    fc.tuple(validFor(schema), wrongFor(each)).map(([value, bad]) => ({
      value: { ...(value as object), [name]: bad },
      field: name,
    })),
  )
  const missing = required.map((name) =>
    validFor(schema).map((value) => {
      const { [name]: _, ...rest } = value as Record<string, unknown>
      return { value: rest, field: name }
    }),
  )
  const unknown = validFor(schema).map((value) => ({
    value: { ...(value as object), surprise: 1 },
    field: 'surprise',
  }))
  return schema.type === 'object' ? fc.oneof(unknown, ...wrong, ...missing) : null
}

/** A value of a type that the schema does not take. */
function wrongFor(schema: Schema): fc.Arbitrary<unknown> {
  const types = new Set((schema.anyOf ?? [schema]).map(({ type }) => type))
  const samples = {
    string: 'text',
    integer: 1.5,
    boolean: true,
    null: null,
    array: [[1]],
    object: { odd: 1 },
  }
  const wrong = Object.entries(samples).filter(([type]) => !types.has(type))
  return fc.constantFrom(...wrong.map(([, value]) => value), ...(types.has('integer') ? [1.5] : []))
}
