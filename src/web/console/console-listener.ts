/** The listener for operators: the management API under `/v1`, and in dev mode the inbox. */
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { newListener } from '../http/listener.ts'
import { readBody } from '../http/read-body.ts'
import { addInbox, type InboxDeps } from '../inbox/inbox.ts'
import { bodyBytesMax } from '../management-api/read-request.ts'
import { addManagementApi, type ManagementApiDeps, refuseOtherRoutes } from '../management-api/routes.ts'

export type ConsoleDeps = ManagementApiDeps & {
  /** The inbox of dev mode; null for none. */
  readonly inbox: InboxDeps | null
}

export function newConsoleListener(deps: ConsoleDeps): FastifyInstance {
  const listener = newListener({ emit: deps.emit, notFound: refuseOtherRoutes })
  listener.removeAllContentTypeParsers()
  listener.addContentTypeParser('*', (_request: unknown, stream: Readable) => readBody(stream, bodyBytesMax))
  if (deps.inbox !== null) addInbox(listener, deps.inbox)
  addManagementApi(listener, deps)
  return listener
}
