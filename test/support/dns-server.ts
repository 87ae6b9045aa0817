/** A name server that no good one is: it fails, or says nothing. It counts what it is asked. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEnd, type Scope } from './temporary.ts'

export async function startFaultyServer(scope: Scope, fault: 'SERVFAIL' | 'silence') {
  const socket = createSocket('udp4')
  const state = { queries: 0 }
  socket.on('message', (query, { address, port }) => {
    state.queries += 1
    if (fault === 'silence') return
    const answer = Buffer.from(query)
    answer[2] = 0x80 | (query[2] ?? 0) // a response
    answer[3] = 2
    socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEnd(scope, () => socket.close())
  return { server: `127.0.0.1:${socket.address().port}`, count: () => state.queries }
}
