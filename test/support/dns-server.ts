/**
 * A name server without names: it fails, says nothing, says that there is no such name, or loses the first
 * query. It counts what it is asked.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEnd, type Scope } from './temporary.ts'

export async function startFaultyServer(scope: Scope, fault: 'SERVFAIL' | 'silence' | 'absence' | 'loss') {
  const socket = createSocket('udp4')
  const state = { queries: 0 }
  socket.on('message', (query, { address, port }) => {
    state.queries += 1
    if (fault === 'silence' || (fault === 'loss' && state.queries === 1)) return
    const answer = Buffer.from(query)
    answer[2] = 0x80 | (query[2] ?? 0) // a response
    answer[3] = fault === 'SERVFAIL' ? 2 : 3 // or NXDOMAIN
    socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEnd(scope, () => socket.close())
  return { server: `127.0.0.1:${socket.address().port}`, count: () => state.queries }
}
