/** Clients of the floods: they go on until the signal, and none waits for an answer after it. */
import { once, setMaxListeners } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../http-client.ts'

/** Strangers have another address than mail providers and the app that is measured, as on the Internet. */
const strangerAddress = '127.0.0.2'

/** A signal for `ms` from now. */
export function signalAfter(ms: number): AbortSignal {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal) // each connection has one
  setTimeout(() => controller.abort(), ms)
  return controller.signal
}

export type Answers = Record<string, number>

export const describeAnswers = (answers: Answers): string =>
  Object.entries(answers)
    .map(([answer, times]) => `${times}×${answer}`)
    .join(', ')

export const describeOthers = (answers: Answers): string => describeAnswers(answers) || 'no answer'

/** After a failure, so that a client of a service that refuses connections does not use up a core. */
const failedPauseMs = 20

/** `clients` ask one after the other, without pause or at most every `everyMs`. Counts the answers. */
export async function hammer(
  signal: AbortSignal,
  { clients, everyMs = 0 }: { readonly clients: number; readonly everyMs?: number },
  ask: (n: number, client: number) => Promise<string>,
): Promise<Answers> {
  const answers: Answers = {}
  const work = async (client: number) => {
    for (let n = client; !signal.aborted; n += clients) {
      const begunMs = performance.now()
      const answer = await ask(n, client).catch(() => 'failed')
      if (signal.aborted) return
      answers[answer] = (answers[answer] ?? 0) + 1
      const leftMs = everyMs - (performance.now() - begunMs)
      const pauseMs = answer === 'failed' ? Math.max(failedPauseMs, leftMs) : leftMs
      if (pauseMs > 0) await sleep(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => work(client)))
  return answers
}

/** Sends requests as text over one connection, and opens another when the server has closed it. */
export function newCaller(port: number, signal: AbortSignal, from = strangerAddress) {
  let client: HttpClient | null = null
  signal.addEventListener('abort', () => client?.close())
  return async (request: string): Promise<string> => {
    client ??= await HttpClient.open(port, from)
    if (signal.aborted) client.close()
    const answer = await client.ask(request)
    if (answer === 'closed') client = null
    return answer
  }
}

/** The clients that stay connected are many: their attempts to come back must not be a load of their own. */
const comeBackMs = 500

/** Opens a connection that says nothing, and another one when it is closed. */
export async function stayConnected(port: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: strangerAddress })
    socket.on('error', () => {})
    const close = () => socket.destroy()
    signal.addEventListener('abort', close)
    await once(socket, 'close').catch(() => {})
    signal.removeEventListener('abort', close)
    if (!signal.aborted) await sleep(comeBackMs)
  }
}

/** Gives a mail server one message over a connection of its own. Returns the last reply's code. */
export async function giveMail({
  port,
  to,
  message,
  signal,
}: {
  port: number
  to: string
  message: Buffer
  signal: AbortSignal
}): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: strangerAddress })
  const close = () => socket.destroy()
  signal.addEventListener('abort', close)
  try {
    const say = newDialogue(socket)
    let reply = await say(null)
    for (const line of ['EHLO stranger.test', 'MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA'])
      reply = await say(Buffer.from(`${line}\r\n`))
    return reply === '354' ? await say(Buffer.concat([message, Buffer.from('\r\n.\r\n')])) : reply
  } finally {
    signal.removeEventListener('abort', close)
    socket.destroy()
  }
}

/** Writes, and resolves to the code of the reply; `closed` if there is none. */
function newDialogue(socket: Socket): (bytes: Buffer | null) => Promise<string> {
  let text = ''
  let onText = () => {}
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    onText()
  })
  socket.once('close', () => onText())
  return (bytes) =>
    new Promise((resolve) => {
      onText = () => {
        const last = /^(\d{3}) .*\r\n$/m.exec(text)?.[1]
        if (last === undefined && !socket.destroyed) return
        text = ''
        resolve(last ?? 'closed')
      }
      if (bytes !== null) socket.write(bytes)
      onText()
    })
}
