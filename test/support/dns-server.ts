/** A name server on a socket, for faults that real servers have too. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEnd, type Scope } from './temporary.ts'

type Fault = 'SERVFAIL' | 'silence' | 'absence' | 'emptiness' | 'loss'

/** NOERROR without a record is the answer for a name that has records of another type. */
const codes: Readonly<Record<Fault, number>> = { SERVFAIL: 2, silence: 2, absence: 3, emptiness: 0, loss: 3 }

/**
 * A name server without records: it fails, says nothing, says that there is no such name or record, or loses
 * the first query. It counts what it is asked.
 */
export async function startNameServer(scope: Scope, fault: Fault) {
  const socket = createSocket('udp4')
  const state = { queries: 0 }
  socket.on('message', (query, { address, port }) => {
    state.queries += 1
    if (fault === 'silence' || (fault === 'loss' && state.queries === 1)) return
    const answer = Buffer.from(query)
    answer[2] = 0x80 | (query[2] ?? 0) // a response
    answer[3] = codes[fault]
    socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEnd(scope, () => socket.close())
  return { server: `127.0.0.1:${socket.address().port}`, count: () => state.queries }
}
