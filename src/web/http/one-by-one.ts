/**
 * One request of a connection at a time. HTTP/1.1 lets a client send many before it reads an answer
 * (pipelining). Begun all at once they would stand in front of everybody else's, and 64 KiB of bytes
 * become megabytes once parsed: so they wait their turn, and a client that has too many waiting is
 * cut off. Sending POSTs that way is advised against anyway (RFC 9112, 9.3.2). What is refused before
 * any hook (an unknown Expect, a path that cannot be decoded) takes no turn: it costs next to nothing,
 * and Node sends the answers in order.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const waitingMax = 16

type Turn = { readonly request: IncomingMessage | null; readonly begin: () => void }

/** By connection: the turn that is under way, and those that wait behind it. */
const turnsOf = new WeakMap<Socket, Turn[]>()

/** Calls `begin` once every earlier response on the connection is out; never, where it closes before. */
export function inTurn(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
  const { socket } = request
  response.once('close', () => beginNext(socket))
  const turns = turnsOf.get(socket)
  if (turns === undefined) {
    turnsOf.set(socket, [{ request, begin }])
    begin()
  } else if (turns.length <= waitingMax) {
    turns.push({ request, begin })
  } else {
    socket.destroy()
  }
}

/** Acts once the requests that came whole have their answers; for bytes that are none. */
export function afterWhole(socket: Socket, act: () => void): void {
  const turns = turnsOf.get(socket) ?? []
  if (turns.at(-1)?.request?.complete === false) turns.pop() // it is the malformed one
  if (turns.length === 0) act()
  else turns.push({ request: null, begin: act })
}

function beginNext(socket: Socket): void {
  if (!socket.writable) return // nothing can be answered any more, so nothing may be begun
  const turns = turnsOf.get(socket) ?? []
  turns.shift()
  const [next] = turns
  if (next === undefined) turnsOf.delete(socket)
  else next.begin()
}
