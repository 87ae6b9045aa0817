/** A name server on a socket, for faults that real servers have too. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEnd, type Scope } from './temporary.ts'

type Fault = 'SERVFAIL' | 'silence' | 'absence' | 'emptiness' | 'loss'

/** NOERROR without a record is the answer for a name that has records of another type. */
const codes: Readonly<Record<Fault, number>> = { SERVFAIL: 2, silence: 2, absence: 3, emptiness: 0, loss: 3 }

/** A name server that has this address for every name. */
export async function startAddressServer(scope: Scope, address: string) {
  const socket = createSocket('udp4')
  socket.on('message', (query, client) => {
    // The question ends with its type and class, after the empty label; what follows it is left out.
    const end = query.indexOf(0, 12) + 5
    const hasAddress = query.readUInt16BE(end - 4) === 1
    const answer = Buffer.from(query.subarray(0, end))
    answer.writeUInt16BE(0x8000, 2)
    for (const [at, count] of [1, hasAddress ? 1 : 0, 0, 0].entries()) answer.writeUInt16BE(count, 4 + 2 * at)
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...address.split('.').map(Number)])
    socket.send(hasAddress ? Buffer.concat([answer, record]) : answer, client.port, client.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEnd(scope, () => socket.close())
  return `127.0.0.1:${socket.address().port}`
}

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
