/** The OpenAPI document of the management API, made from the table of operations. */
import type { TObject } from 'typebox'
import { noBody } from '../../../management/operation/operation.ts'
import { type ErrorCode, errorStatus } from '../../../management/operation/result.ts'
import { findOperation, type OperationName, operationNames } from '../../../management/operations.ts'
import {
  AppResource,
  AuditResource,
  EmailResource,
  KeyResource,
  NewKeyResource,
  TokenResource,
} from '../../../management/resources.ts'
import { QueueResource } from '../../../management/service/queue.ts'
import { bodyTypes } from './read-request.ts'

type Json = Record<string, unknown>

type Content = { readonly 'application/json': { readonly schema: unknown } }
type Responses = Readonly<Record<string, { readonly description: string; readonly content: Content }>>

/** One operation in the document; further properties are those of OpenAPI. */
type OperationDescription = Json & { readonly operationId: OperationName; readonly responses: Responses }

type ApiDocument = Json & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationDescription>>>>
  readonly components: Json
}

const title = 'Postern management API'
const description = [
  'The operations for operators: apps, keys, emails, the queue, tokens and the audit.',
  'Send a management token with each request. PUT and PATCH may be repeated, and so may DELETE (an app that is gone answers 404).',
  'Clients must ignore unknown fields in answers.',
].join(' ')

/** Errors that every operation may answer with. */
const common: readonly ErrorCode[] = [
  'invalid_request',
  'invalid_token',
  'not_permitted',
  'too_many_requests',
  'store_unavailable',
]

export function newDocument(version: string): ApiDocument {
  const paths: Record<string, Record<string, OperationDescription>> = {}
  for (const name of operationNames) {
    const { method, path } = findOperation(name)
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(name) }
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description },
    servers: [{ url: '/', description: 'The address that serves this document, and the console.' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'psa_ and 49 characters' } },
      schemas: {
        Error: errorSchema,
        ...Object.fromEntries([...named].map(([schema, name]) => [name, openSchema(schema)])),
      },
    },
  }
}

const errorSchema = {
  type: 'object',
  required: ['ok', 'error'],
  properties: {
    ok: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message', 'requestId'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        requestId: { type: 'string', pattern: '^req_[0-9a-z]{26}$' },
        issues: {
          type: 'array',
          items: {
            type: 'object',
            required: ['field', 'code', 'message'],
            properties: {
              field: { type: 'string' },
              code: { type: 'string' },
              message: { type: 'string' },
            },
          },
        },
      },
    },
  },
}

function requestBody(name: OperationName): Json {
  const operation = findOperation(name)
  const content = Object.fromEntries(bodyTypes(operation).map((type) => [type, { schema: operation.body }]))
  return { required: true, content }
}

const json = (schema: unknown): Content => ({ 'application/json': { schema } })

function describe(name: OperationName): OperationDescription {
  const { body, creates, path, query, role, summary, wholeService } = findOperation(name)
  const scope = wholeService ? ', for the whole service' : ''
  const parameters = [...pathParameters(path), ...queryParameters(query), ...headerParameters(name)]
  return {
    operationId: name,
    summary,
    description: `Needs the role ${role}${scope}.`,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== noBody && { requestBody: requestBody(name) }),
    responses: { ...successes(name, creates), ...failures(name) },
  }
}

/** The schemas that several operations share, with their names in the document. */
const named = new Map<unknown, string>([
  [AppResource, 'App'],
  [KeyResource, 'Key'],
  [NewKeyResource, 'NewKey'],
  [EmailResource, 'Email'],
  [QueueResource, 'Queue'],
  [TokenResource, 'Token'],
  [AuditResource, 'AuditEntry'],
])

/** The schema of an answer: shared schemas by reference, and open for fields that a later version adds. */
function referToNamed(schema: unknown): unknown {
  const name = named.get(schema)
  return name === undefined ? openSchema(schema, referToNamed) : { $ref: `#/components/schemas/${name}` }
}

/** The schema without `additionalProperties: false`, its parts mapped by `map`. */
function openSchema(schema: unknown, map: (part: unknown) => unknown = openSchema): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map((part) => map(part))
  const entries = Object.entries(schema).filter(([name, value]) => name !== 'additionalProperties' || value !== false)
  return Object.fromEntries(entries.map(([name, value]) => [name, map(value)]))
}

const pathParameters = (path: string): Json[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))

const queryParameters = ({ properties }: TObject): Json[] =>
  Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }))

function headerParameters(name: OperationName): Json[] {
  const { creates, method, versioned } = findOperation(name)
  if (!versioned || method === 'GET') return []
  const header = (headerName: string, text: string) => ({
    name: headerName,
    in: 'header',
    description: text,
    schema: { type: 'string' },
  })
  const match = header(
    'If-Match',
    'The ETag of the version to change; if the app has another version, the answer is 412.',
  )
  return creates ? [match, header('If-None-Match', '`*`: only create the app, never replace one.')] : [match]
}

function successes(name: OperationName, creates: boolean): Responses {
  const { answer, method, versioned } = findOperation(name)
  const headers = versioned && { headers: { ETag: { schema: { type: 'string' } } } }
  const done = { description: 'Done.', ...headers, content: json(referToNamed(answer)) }
  if (!creates) return { 200: done }
  const made = { ...done, description: 'Made.' }
  return method === 'PUT' ? { 200: done, 201: made } : { 201: made }
}

function failures(name: OperationName): Responses {
  const { audited, errors, target, wholeService } = findOperation(name)
  const codes = [
    ...common,
    ...(target === 'none' ? [] : (['not_found'] as const)),
    ...(audited && !wholeService ? (['changed_too_often'] as const) : []),
    ...errors,
  ]
  const statuses = [...new Set(codes.map((code) => errorStatus[code]))].sort()
  const answers = statuses.map((status) => {
    const names = [...new Set(codes.filter((code) => errorStatus[code] === status))]
    return [status, { description: names.join(', '), content: json({ $ref: '#/components/schemas/Error' }) }] as const
  })
  return Object.fromEntries(answers)
}
