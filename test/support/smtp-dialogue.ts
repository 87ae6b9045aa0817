/** A client of SMTP servers that says one command at a time. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { eventually } from './wait.ts'

export type Dialogue = {
  readonly socket: Socket
  readonly greeting: string
  /** Resolves to the last line of the reply, or `closed`. */
  readonly say: (command: string) => Promise<string>
  readonly ehlo: () => Promise<string>
  /** All that the server has said. */
  readonly heard: () => string
  readonly isClosed: () => boolean
}

/** @param localAddress the client's, of which loopback has many */
export async function openDialogue(port: number, localAddress = '127.0.0.1'): Promise<Dialogue> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  let text = ''
  let heard = ''
  let isClosed = false
  socket.on('data', (chunk) => {
    text += chunk
    heard += chunk
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
  })
  const reply = async () => {
    const line = await eventually(() => /^\d{3} .*\r\n/m.exec(text)?.[0] ?? (isClosed ? 'closed' : null), 60_000)
    text = ''
    return line.trim()
  }
  const say = (command: string) => {
    socket.write(`${command}\r\n`)
    return reply()
  }
  const greeting = await reply()
  return { socket, say, greeting, ehlo: () => say('EHLO mx.example.com'), isClosed: () => isClosed, heard: () => heard }
}

/** Hands a report over, from the empty sender, and resolves to the last reply. */
export async function handReport(
  port: number,
  { to, report, localAddress }: { readonly to: string; readonly report: string; readonly localAddress?: string },
): Promise<string> {
  const { say, socket, ehlo } = await openDialogue(port, localAddress)
  await ehlo()
  await say('MAIL FROM:<>')
  const rcpt = await say(`RCPT TO:<${to}>`)
  const last = rcpt.startsWith('250') && (await say('DATA')).startsWith('354') ? await say(`${report}\r\n.`) : rcpt
  socket.end()
  return last
}

/** Opens a message to this address. */
export async function beginData(port: number, to: string, localAddress?: string): Promise<Dialogue> {
  const dialogue = await openDialogue(port, localAddress)
  await dialogue.ehlo()
  for (const command of ['MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA']) assert.match(await dialogue.say(command), /^[23]/)
  return dialogue
}
