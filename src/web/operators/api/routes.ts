/** The management API over HTTP: one route for each operation, under `/v1`. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Management } from '../../../management/context.ts'
import type { Access } from '../../../management/operation/access.ts'
import { errorStatus, type OperationError, type Result } from '../../../management/operation/result.ts'
import { findOperation, type OperationName, operationNames } from '../../../management/operations.ts'
import { perform } from '../../../management/perform.ts'
import type { Emit } from '../../../observe/events.ts'
import { StoreUnavailable } from '../../../store/store.ts'
import { errorBody, sendError, sendJson } from '../../http/listener.ts'
import { OperatorRates } from '../rates.ts'
import { Authenticator } from './authenticate.ts'
import { newDocument } from './openapi.ts'
import { readInput } from './read-request.ts'

export type ManagementApiDeps = { readonly management: Management; readonly emit: Emit }

export function addManagementApi(listener: FastifyInstance, deps: ManagementApiDeps): void {
  const checks = { authenticator: new Authenticator(deps.management.store), rates: new OperatorRates() }
  for (const name of operationNames) {
    const { method, path } = findOperation(name)
    const url = path.replace(/\{(\w+)\}/g, ':$1')
    listener.route({
      method,
      url,
      handler: (request, reply) => answer(deps, { ...checks, name, request, reply }),
    })
  }
  let document: Buffer | undefined // made when it is first asked for: few are, and it takes 10 ms and 240 KB
  listener.get('/v1/openapi.json', (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(newDocument(deps.management.version)))
    return reply.header('content-type', 'application/json').send(document)
  })
}

type OperationRequest = {
  readonly authenticator: Authenticator
  readonly rates: OperatorRates
  readonly name: OperationName
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

async function answer(
  { management, emit }: ManagementApiDeps,
  { authenticator, rates, name, request, reply }: OperationRequest,
): Promise<FastifyReply> {
  const event = { kind: 'operation_answered', requestId: request.id, operation: name } as const
  let actor: string | null = null
  const run = async (): Promise<Result<unknown>> => {
    const access = await authenticator.authenticate(request.headers.authorization, request.id)
    if (!access.ok) return access
    actor = access.value.actor.name
    return runOperation(management, rates, { name, request, access: access.value })
  }
  const result = await run().catch((error) => {
    if (!(error instanceof StoreUnavailable)) throw error
    emit({ kind: 'store_unavailable', requestId: request.id, error, work: 'operation' })
    return storeUnavailable
  })
  const status = chooseStatus(result)
  emit({ ...event, actor, status, code: result.ok ? null : result.error.code })
  reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
  if (!result.ok) return sendOperationError(reply, status, result.error)
  if (findOperation(name).versioned) reply.header('etag', `"${(result.value as { version: number }).version}"`)
  return sendJson(reply, status, JSON.stringify(result.value))
}

const storeUnavailable: Result<never> = {
  ok: false,
  error: {
    code: 'store_unavailable',
    message:
      'The database does not answer. The change may have been made, in whole or in part: check before you repeat it.',
    retryAfterS: 2,
  },
}

type OperationCall = {
  readonly name: OperationName
  readonly request: FastifyRequest
  readonly access: Access
}

async function runOperation(
  management: Management,
  rates: OperatorRates,
  { name, request, access }: OperationCall,
): Promise<Result<unknown>> {
  const error = await rates.charge(`${access.actor.id}`, {
    isSearch: name === 'email.find' || name === 'suppression.find',
  })
  if (error !== null) return { ok: false, error }
  return perform(management, access, {
    name,
    params: request.params as Record<string, string>,
    read: () => readInput(findOperation(name), request),
    hasLeft: () => request.raw.socket.destroyed,
  })
}

function chooseStatus(result: Result<unknown>): number {
  if (!result.ok) return errorStatus[result.error.code]
  return result.created ? 201 : 200
}

function sendOperationError(
  reply: FastifyReply,
  status: number,
  { retryAfterS, ...error }: OperationError,
): FastifyReply {
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="postern management"')
  if (retryAfterS !== undefined) reply.header('retry-after', String(retryAfterS))
  return sendJson(reply, status, errorBody({ ...error, requestId: reply.request.id }))
}

const patterns = operationNames.map((name) => {
  const { method, path } = findOperation(name)
  return { method, pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`) }
})

/** Answers what is no route: 405 for the address of an operation, otherwise 404. */
export function refuseOtherRoutes(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ''] = request.url.split('?', 1)
  const methods = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
  if (methods.length === 0)
    return sendError(reply, 404, {
      code: 'not_found',
      message: 'There is nothing at this address; /v1/openapi.json lists the operations.',
    })
  const allowed = [...new Set(methods)].join(', ')
  reply.header('allow', allowed)
  return sendError(reply, 405, { code: 'method_not_allowed', message: `Send ${allowed} to this address.` })
}
