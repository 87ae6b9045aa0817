/**
 * One request of a connection at a time. HTTP/1.1 lets a client send many before it reads an answer
 * (pipelining). Begun all at once they would stand in front of everybody else's, and 64 KiB of bytes
 * become megabytes once parsed: so they wait their turn, and a client that has too many waiting is
 * cut off. Sending POSTs that way is advised against anyway (RFC 9112, 9.3.2).
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const waitingMax = 16

type Begin = () => void

/** What waits behind the request that is under way, by connection. */
const waitingOf = new WeakMap<Socket, Begin[]>()

/** Calls `begin` once every earlier response on the connection is out; never, where it closes before. */
export function afterEarlier(socket: Socket, response: ServerResponse, begin: Begin): void {
  response.once('close', () => beginNext(socket))
  const waiting = waitingOf.get(socket)
  if (waiting === undefined) {
    waitingOf.set(socket, [])
    begin()
  } else if (waiting.length < waitingMax) {
    waiting.push(begin)
  } else {
    socket.destroy()
  }
}

function beginNext(socket: Socket): void {
  if (socket.destroyed) return
  const begin = waitingOf.get(socket)?.shift()
  if (begin === undefined) waitingOf.delete(socket)
  else begin()
}
