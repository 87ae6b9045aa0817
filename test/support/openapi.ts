/** Checks answers against docs/openapi.yaml: status, required headers and their format, body. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { parse } from 'yaml'

type Schema = Record<string, unknown>
type Header = { required?: boolean; schema?: Schema; $ref?: string }
type Response = { headers?: Record<string, Header>; content: { 'application/json': { schema: Schema } } }
type Document = {
  components: { headers: Record<string, Header>; schemas: Record<string, Schema> }
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>
}

const openapi = parse(readFileSync(new URL('../../docs/openapi.yaml', import.meta.url), 'utf8')) as Document

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addSchema({ $id: 'openapi', components: openapi.components })
const responses = openapi.paths['/v1/email']?.post?.responses ?? {}
const validators = new Map<string, ValidateFunction>()

function validator(name: string, schema: Schema): ValidateFunction {
  const known = validators.get(name)
  if (known !== undefined) return known
  const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')) as Schema
  const compiled = ajv.compile(absolute)
  validators.set(name, compiled)
  return compiled
}

/** Fails if docs/openapi.yaml does not describe this answer of `POST /v1/email`. */
export function assertDescribed(status: number, headers: Headers, body: unknown): void {
  const response = responses[String(status)]
  assert.ok(response, `docs/openapi.yaml does not know status ${status}`)
  const check = validator(`body ${status}`, response.content['application/json'].schema)
  assert.ok(check(body), `body of ${status}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(body)}`)
  assert.equal(headers.get('content-type'), 'application/json')
  for (const [name, given] of Object.entries(response.headers ?? {})) {
    const header = given.$ref === undefined ? given : openapi.components.headers[given.$ref.split('/').at(-1) ?? '']
    const value = headers.get(name)
    assert.ok(value !== null || header?.required !== true, `${status} lacks the header ${name}`)
    if (value === null || header?.schema === undefined) continue
    const valid = validator(`header ${status} ${name}`, header.schema)
    assert.ok(valid(value), `header ${name} of ${status}: ${value}`)
  }
}
