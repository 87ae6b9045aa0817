/**
 * An SMTP server that accepts mail, and sometimes fails. A message counts as accepted even if the reply is
 * lost, as in a real server.
 */
import { type Received, readMessage } from './message.ts'
import type { Link, Network, Peer, Server } from './network.ts'
import type { Random } from './random.ts'
import type { Owner, World } from './world.ts'

/** The ways in which a relay fails. */
export const relayFaults = [
  'refuses_for_now', // 451 at RCPT
  'greylists', // 450 at the first RCPT of a recipient
  'fails_after_data', // 451 after the final dot
  'refuses', // most messages, with 554 after the final dot
  'closes', // 421 in place of a reply
  'loses_reply', // accepts the message and cuts the connection
  'cuts_data', // cuts the connection before the final dot has arrived
  'holds', // accepts the message, and replies minutes later
  'stalls', // does not reply at all
  'babbles', // sends a reply that nobody has asked for
  'slow',
  'refused', // no connection is accepted
  'hang', // connections are not answered
] as const

export type RelayFault = (typeof relayFaults)[number]

/** A copy of a message that a relay has accepted, or has begun to receive. */
export type Copy = {
  readonly messageId: string
  readonly received: Received
  /** Its beginning was not read as commands. */
  readonly isWhole: boolean
  readonly owner: Owner
  readonly relay: string
  /** When the reply reached the process. */
  answeredAtMs: number | null
}

export type RelayEvents = {
  /** A process writes the bytes of a message. */
  readonly onHandOver: (messageId: string, owner: Owner, link: Link) => void
  readonly onAccepted: (copy: Copy) => void
  /** The relay refuses a message for good. */
  readonly onRefused: (messageId: string, relay: string) => void
  /** The reply to an accepted message has arrived. */
  readonly onAnswered: () => void
}

/** Connections that one process may have to one relay. */
export const connectionsMax = 5
const offered = ['relay.test', 'PIPELINING', 'SIZE 10485760', '8BITMIME', 'DSN', 'ENHANCEDSTATUSCODES']
const bare = ['relay.test', 'SIZE 10485760']

export class SimulatedRelay {
  readonly name: string
  readonly world: World
  readonly random: Random
  readonly events: RelayEvents
  readonly server: Server
  readonly extensions: readonly string[]
  fault: RelayFault | null = null
  /** Recipients that were greylisted. */
  readonly greylisted = new Set<string>()
  readonly #links = new Set<Link>()

  constructor(world: World, network: Network, options: { name: string; port: number; events: RelayEvents }) {
    this.name = options.name
    this.world = world
    this.random = world.random(options.name)
    this.events = options.events
    this.extensions = this.random.chance(0.7) ? offered : bare
    this.server = { reachability: 'open', latencyMs: 0, accept: (link) => this.#accept(link) }
    network.serve(options.port, this.server)
  }

  #accept(link: Link): RelaySession {
    for (const each of this.#links) if (!each.isOpen) this.#links.delete(each)
    this.#links.add(link)
    const open = [...this.#links].filter(({ owner }) => owner === link.owner).length
    this.world.require(
      open <= connectionsMax,
      () => `connections: ${link.owner.name} has ${open} connections to ${this.name}`,
    )
    return new RelaySession(this, link)
  }

  /** The client is about to end it. */
  left = (link: Link): unknown => this.#links.delete(link)

  setFault(fault: RelayFault | null): void {
    this.fault = fault
    this.server.reachability = fault === 'refused' || fault === 'hang' ? fault : 'open'
    this.server.latencyMs = fault === 'slow' ? 400 : 0
  }
}

const dot = '\r\n.\r\n'

class RelaySession implements Peer {
  readonly #relay: SimulatedRelay
  readonly #link: Link
  #text = ''
  #inData = false
  #recipient = ''
  #lastMs = 0
  /** Since when the client has waited for the reply to a message. */
  #waitsSinceMs: number | null = null
  /** It has sent a reply too many, so the client may leave at any time. */
  #isOutOfStep = false

  constructor(relay: SimulatedRelay, link: Link) {
    this.#relay = relay
    this.#link = link
    link.onWrite = (bytes) => {
      if (!this.#inData) {
        if (bytes.toString('latin1').startsWith('QUIT')) relay.left(link)
        return
      }
      const messageId = readMessageId(bytes.toString('latin1'))
      if (messageId !== null) relay.events.onHandOver(messageId, link.owner, link)
    }
    if (relay.fault === 'closes') this.#close()
    else this.#say('220 relay.test ESMTP')
  }

  /** @param done is called when the reply leaves; `arrived` when it has arrived */
  #say(reply: string, done: () => void = () => {}, arrived: () => void = () => {}): void {
    const { random, world } = this.#relay
    const workMs = random.skewed(0.1, this.#relay.fault === 'slow' ? 2000 : 8)
    this.#lastMs = Math.max(this.#lastMs, world.nowMs + workMs)
    const send = () => {
      if (!this.#link.isOpen) return
      this.#link.write(`${reply}\r\n`, arrived)
      done()
    }
    world.after(this.#lastMs - world.nowMs, send)
  }

  #close(): void {
    this.#say('421 4.3.2 relay.test closes', () => this.#link.end())
  }

  receive(bytes: Buffer): unknown {
    this.#text += bytes.toString('latin1')
    for (;;) {
      if (this.#inData && this.#relay.fault === 'cuts_data') return this.#link.cut()
      const end = this.#text.indexOf(this.#inData ? dot : '\r\n')
      if (end < 0) return
      const part = this.#text.slice(0, end)
      this.#text = this.#text.slice(end + (this.#inData ? dot : '\r\n').length)
      if (this.#inData) this.#endMessage(part)
      else this.#command(part)
    }
  }

  /** A process waits for the reply to a message for ten minutes, unless it is killed or asked to stop. */
  closed(): void {
    const { name, world } = this.#relay
    const { isAlive, mayEndFromMs } = this.#link.owner
    const waitedMs = world.nowMs - (this.#waitsSinceMs ?? world.nowMs)
    const isHasty =
      isAlive &&
      !this.#isOutOfStep &&
      waitedMs > 0 &&
      waitedMs < 500_000 &&
      world.nowMs < mayEndFromMs &&
      !this.#link.isCut
    world.require(!isHasty, () => `copies: ${this.#link.owner.name} left ${name} before it had replied`)
  }

  #command(line: string): unknown {
    const { extensions, fault, random } = this.#relay
    if (fault === 'stalls' && random.chance(0.1)) return
    if (fault === 'closes' && random.chance(0.5)) return this.#close()
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO')
      return this.#say(extensions.map((each, n) => `250${n + 1 < extensions.length ? '-' : ' '}${each}`).join('\r\n'))
    if (verb === 'MAIL') return this.#say('250 2.1.0 OK')
    if (verb === 'RCPT') return this.#receiveRecipient(/<([^>]*)>/.exec(line)?.[1] ?? '')
    if (verb === 'QUIT') return this.#say('221 2.0.0 bye', () => this.#link.end())
    if (verb !== 'DATA') return this.#say('250 2.0.0 OK')
    if (this.#recipient === '') return this.#say('503 5.5.1 no recipient')
    if (fault === 'babbles' && random.chance(0.5)) {
      this.#isOutOfStep = true
      this.#say('250 2.0.0 by the way')
    }
    this.#say('354 go on', () => {
      this.#inData = true
    })
  }

  #receiveRecipient(address: string): unknown {
    const { fault, greylisted } = this.#relay
    this.#recipient = ''
    if (address.startsWith('gone')) return this.#say('550 5.1.1 no such user')
    if (fault === 'refuses_for_now') return this.#say('451 4.3.0 try later')
    if (fault === 'greylists' && !greylisted.has(address)) {
      greylisted.add(address)
      return this.#say('450 4.2.0 greylisted, try again')
    }
    this.#recipient = address
    this.#say('250 2.1.5 OK')
  }

  #endMessage(message: string): unknown {
    const { events, fault, name, random, world } = this.#relay
    this.#inData = false
    this.#waitsSinceMs = world.nowMs
    const messageId = readMessageId(message)
    // A client that is out of step has begun before the 354, and the beginning was read as commands.
    if (messageId === null && this.#isOutOfStep) return this.#say('554 5.6.0 no message')
    if (messageId === null) return world.fail(`${name} received a message without a Message-ID`)
    const answered = () => {
      this.#waitsSinceMs = null
    }
    if (fault === 'fails_after_data') {
      const secret = /token=(?:3D)?(\w+)/.exec(message)?.[1] ?? ''
      return this.#say(`451 4.3.0 no space for ${this.#recipient} ${secret}`, undefined, answered)
    }
    if (fault === 'refuses' && random.chance(0.7)) {
      events.onRefused(messageId, name)
      return this.#say('554 5.6.0 not this message', undefined, answered)
    }
    if (fault === 'stalls') return
    const copy: Copy = {
      messageId,
      received: readMessage(message, this.#recipient),
      isWhole: !this.#isOutOfStep,
      owner: this.#link.owner,
      relay: name,
      answeredAtMs: null,
    }
    this.#recipient = ''
    const accept = () => {
      events.onAccepted(copy)
      if (fault === 'loses_reply') return this.#link.cut()
      this.#say('250 2.0.0 queued', undefined, () => {
        answered()
        copy.answeredAtMs = world.nowMs
        events.onAnswered()
      })
    }
    world.after(fault === 'holds' ? random.skewed(1000, 900_000) : random.skewed(0.1, 20), accept)
  }
}

const readMessageId = (text: string): string | null => /^message-id: *<([^@>]+)@/im.exec(text)?.[1] ?? null
