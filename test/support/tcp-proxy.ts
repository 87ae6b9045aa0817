/** A TCP proxy whose faults a test switches on and off. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atEnd, type Scope } from './temporary.ts'

export type TcpProxy = {
  readonly port: number
  /** While on, an answer of the server is discarded and its connection closed. */
  loseReplies(lose: boolean): void
  /** Closes all connections, and takes none until `restore`. */
  cut(): void
  restore(): void
}

export async function startProxy(scope: Scope, targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const state = { losing: false, cut: false }
  const server = createServer((client) => {
    if (state.cut) return void client.destroy()
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (chunk) => upstream.write(chunk))
    upstream.on('data', (chunk) => {
      if (state.losing) client.destroy()
      else client.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(scope, () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    loseReplies: (lose) => {
      state.losing = lose
    },
    cut: () => {
      state.cut = true
      for (const socket of sockets) socket.destroy()
    },
    restore: () => {
      state.cut = false
    },
  }
}
