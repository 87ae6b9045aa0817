/**
 * Handles one request of a connection at a time. HTTP/1.1 lets a client send many requests before it
 * reads an answer (pipelining). If all began at once, they would delay everybody else's, and 64 KiB of
 * bytes become megabytes once parsed. So they wait, and a client with too many waiting requests is cut
 * off (RFC 9112 §9.3.2 advises against pipelining POST anyway). Requests that are refused before any
 * hook (an unknown Expect, a path that cannot be decoded) do not wait: they cost next to nothing, and
 * Node sends the answers in order.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const waitingMax = 16

type Entry = { readonly request: IncomingMessage | null; readonly begin: () => void }

/** By connection: the request in progress, then those that wait. */
const queues = new WeakMap<Socket, Entry[]>()

/**
 * Calls `begin` once every earlier response on the connection is out; never if the connection closes first.
 */
export function inOrder(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
  const { socket } = request
  response.once('close', () => beginNext(socket))
  const queue = queues.get(socket)
  if (queue === undefined) {
    queues.set(socket, [{ request, begin }])
    begin()
  } else if (queue.length <= waitingMax) {
    queue.push({ request, begin })
  } else {
    socket.destroy()
  }
}

/**
 * Runs `act` after all complete requests on this connection are answered. For input that is not a request.
 */
export function afterComplete(socket: Socket, act: () => void): void {
  const queue = queues.get(socket) ?? []
  if (queue.at(-1)?.request?.complete === false) queue.pop() // the malformed one
  if (queue.length === 0) act()
  else queue.push({ request: null, begin: act })
}

function beginNext(socket: Socket): void {
  if (!socket.writable) return // nothing can be answered any more, so nothing may begin
  const queue = queues.get(socket) ?? []
  queue.shift()
  const [next] = queue
  if (next === undefined) queues.delete(socket)
  else next.begin()
}
