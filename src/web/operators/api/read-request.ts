/** From an HTTP request to the input of an operation. */

import type { FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import { operatorBodyBytesMax } from '../../../domain/bounds.ts'
import { type AnyOperation, noBody } from '../../../management/operation/operation.ts'
import { done, invalid, type Result } from '../../../management/operation/result.ts'
import type { RawInput } from '../../../management/perform.ts'

/** The input as it was sent; `perform` checks it against the schemas. */
export function readInput(operation: AnyOperation, request: FastifyRequest): Result<RawInput> {
  const body = readBody(operation, request)
  if (!body.ok) return body
  const ifVersion = readVersion(request.headers['if-match'])
  if (ifVersion === 'malformed')
    return invalidHeader('If-Match', 'Send one version in quotes, in the form of an ETag, such as "7".')
  const none = request.headers['if-none-match']
  if (operation.creates && none !== undefined && none !== '*')
    return invalidHeader('If-None-Match', 'Only * is supported, to create an app without replacing one.')
  return done({
    query: readQuery(operation.query, request.query as Record<string, unknown>),
    body: body.value,
    ifVersion: operation.versioned ? ifVersion : undefined,
    ifAbsent: operation.versioned && none === '*',
  })
}

const invalidHeader = (field: string, message: string) => invalid([{ field, code: 'malformed_value', message }])

function readVersion(header: string | undefined): number | undefined | 'malformed' {
  if (header === undefined) return undefined
  const [, version] = /^"(\d{1,15})"$/.exec(header.trim()) ?? []
  return version === undefined ? 'malformed' : Number(version)
}

/**
 * Texts of a query as the types that its schema has. Values that do not fit stay as they are, and are refused
 * with their reason.
 */
function readQuery({ properties }: TObject, query: Record<string, unknown>): Record<string, unknown> {
  const types = properties as Readonly<Record<string, { readonly type?: string }>>
  const read = ([name, value]: [string, unknown]): [string, unknown] => {
    const type = Object.hasOwn(types, name) ? types[name]?.type : undefined
    if (type === 'integer' && typeof value === 'string' && /^\d{1,15}$/.test(value)) return [name, Number(value)]
    if (type === 'number' && /^\d{1,9}(?:\.\d{1,9})?$/.test(String(value))) return [name, Number(value)]
    if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true']
    return [name, value]
  }
  return Object.fromEntries(Object.entries(query).map(read))
}

/** A PATCH is a merge patch (RFC 7396), under either name. */
export const bodyTypes = ({ method }: Pick<AnyOperation, 'method'>): readonly string[] =>
  method === 'PATCH' ? ['application/merge-patch+json', 'application/json'] : ['application/json']

function readBody(operation: AnyOperation, { body, headers }: FastifyRequest): Result<unknown> {
  const refused = (code: string, message: string) => invalid([{ field: 'body', code, message }])
  const bytes = body === undefined ? new Uint8Array() : (body as Uint8Array | null)
  if (bytes === null) return refused('body_too_large', `Send at most ${operatorBodyBytesMax} bytes.`)
  const takesBody = operation.body !== noBody
  if (!takesBody && bytes.length === 0) return done(undefined)
  if (!takesBody) return refused('unknown_field', 'This operation takes no body; leave it out.')
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1)
  const types = bodyTypes(operation)
  if (!types.includes(type.trim().toLowerCase()))
    return refused('not_json', `Send the header Content-Type: ${types.join(' or ')}.`)
  if (headers['content-encoding'] !== undefined) return refused('not_json', 'Send the body without Content-Encoding.')
  try {
    return done(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    return refused('not_json', 'The body is not JSON in UTF-8.')
  }
}
