/** Keeps the connections of an HTTP server to the policy of all listeners (`connection-limits.ts`). */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { ConnectionLimits } from '../../domain/connection-limits.ts'

export type ConnectionOptions = {
  readonly max: number
  /** Whether an address may be that of a reverse proxy. */
  readonly isProxy: (address: string) => boolean
}

export function limitConnections(server: Server, { max, isProxy }: ConnectionOptions): void {
  const limits = new ConnectionLimits<Socket>(max, isProxy)
  server.on('connection', (socket: Socket) => {
    const close = () => void socket.destroy()
    if (!limits.admit(socket, { address: socket.remoteAddress ?? '', close })) return close()
    socket.once('close', () => limits.remove(socket))
  })
  // Node emits it once the header is complete.
  server.on('request', ({ socket }, response) => {
    limits.beginWork(socket)
    response.once('close', () => limits.endWork(socket))
  })
}
