/** OpenAPI as Markdown: each operation with its parameters, body, answer and errors. */

type Schema = {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly const?: unknown
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly items?: Schema
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly type?: string | readonly string[]
}
type Body = { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }
type Parameter = {
  readonly name: string
  readonly in: string
  readonly description?: string
  readonly required?: boolean
  readonly schema: Schema
}
type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body & { readonly description: string }>>
}
export type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export function renderOperations({ components, paths }: OpenApi): string {
  const resolve = (schema: Schema): Schema => {
    const name = schema.$ref?.split('/').at(-1)
    return name === undefined ? schema : (components.schemas[name] ?? {})
  }

  /** The type of a value in a few words. */
  const describe = (schema: Schema): string => {
    const name = schema.$ref?.split('/').at(-1)
    if (name !== undefined) return name
    if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(describe))].join(' or ')
    if (schema.const !== undefined) return code(schema.const)
    if (schema.enum !== undefined) return schema.enum.map(code).join(', ')
    if (schema.items !== undefined) return `array of ${describe(schema.items)}`
    const type = Array.isArray(schema.type) ? schema.type.join(' or ') : (schema.type ?? 'any')
    const most = schema.maxLength === undefined ? '' : `, at most ${schema.maxLength} characters`
    return `${schema.format === 'date-time' ? 'date and time' : type}${most}`
  }

  /** Each property of an object, and those of objects in it, by their paths. */
  const listProperties = (schema: Schema, above = ''): string[][] => {
    const { items, properties = {}, required = [] } = resolve(schema)
    if (items !== undefined) return listProperties(items, `${above}[].`.replace('.[]', '[]'))
    return Object.entries(properties).flatMap(([name, inner]) => {
      const path = `${above}${name}`
      const own = [code(path), describe(inner), required.includes(name) ? 'yes' : '', inner.description ?? '']
      const isObject = inner.properties !== undefined || inner.items?.properties !== undefined
      return [own, ...(isObject ? listProperties(inner, `${path}.`) : [])]
    })
  }

  const renderBody = (title: string, body: Body | undefined): string[] => {
    const schema = Object.values(body?.content ?? {})[0]?.schema
    if (schema === undefined) return []
    const rows = listProperties(schema)
    const name = schema.$ref?.split('/').at(-1)
    if (name !== undefined) return [`**${title}:** [${name}](#${name.toLowerCase()})`]
    return rows.length === 0 ? [] : [`**${title}**`, table(['property', 'type', 'always', 'meaning'], rows)]
  }

  const renderOperation = (method: string, path: string, operation: Operation): string => {
    const { description, operationId, parameters = [], requestBody, responses, summary } = operation
    const rows = parameters.map((parameter) => [
      code(parameter.name),
      `${parameter.in}, ${describe(parameter.schema)}`,
      parameter.required === true ? 'yes' : '',
      parameter.description ?? parameter.schema.description ?? '',
    ])
    const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
    const success = Object.entries(responses).filter(([status]) => Number(status) < 400)
    return [
      `## ${method.toUpperCase()} ${path} {#${operationId.replaceAll('.', '-')}}`,
      `${summary}${/[.:]$/.test(summary) ? '' : '.'} ${description ?? ''}`.trim(),
      ...(rows.length === 0 ? [] : [table(['parameter', 'where, type', 'required', 'meaning'], rows)]),
      ...renderBody('Body', requestBody),
      ...success.flatMap(([status, body]) => renderBody(`Response ${status}`, body)),
      table(
        ['status', 'errors'],
        errors.map(([status, { content, description: text }]) => [status, listErrors(content, text)]),
      ),
    ].join('\n\n')
  }

  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => renderOperation(method, path, operation)),
  )
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `## ${name}\n\n${table(['property', 'type', 'always', 'meaning'], listProperties(schema))}`,
  )
  return [...operations, ...schemas].join('\n\n')
}

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``

/** The codes that a schema names, or else the description. */
function listErrors(content: Body['content'], text: string): string {
  const named = JSON.stringify(content ?? {}).matchAll(/"code":\{"(?:enum":\[([^\]]*)\]|const":("[^"]*"))/g)
  const codes = Array.from(named, ([, list, one]) => list ?? one ?? '').flatMap((list) => list.split(','))
  if (codes.length > 0) return codes.map((quoted) => code(JSON.parse(quoted))).join(', ')
  return /^[a-z_]+(, [a-z_]+)*$/.test(text) ? text.split(', ').map(code).join(', ') : text
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
