/**
 * The network between Postern and the servers that it connects to. Bytes keep their order, take a while,
 * and arrive in pieces; a connection may be refused, may hang, or be cut, and then nobody learns how much
 * arrived.
 */
import { Duplex } from 'node:stream'
import type { Random } from './random.ts'
import type { Owner, Planned, World } from './world.ts'

/** The server's end of a connection. */
export type Peer = {
  readonly receive: (bytes: Buffer) => void
  /** The client has ended it, or has died. */
  readonly closed: () => void
}

/** Node asks ten times, once a second. */
const keepAliveAsksMs = 10_000

/** `hang`: nothing answers. */
type Reachability = 'open' | 'refused' | 'hang'

export type Server = {
  reachability: Reachability
  /** How long bytes take, in one direction. */
  latencyMs: number
  readonly accept: (link: Link) => Peer
}

export class Network {
  readonly #world: World
  readonly #random: Random
  /** By port. */
  readonly #servers = new Map<number, Server>()
  readonly #links = new Set<Link>()

  constructor(world: World) {
    this.#world = world
    this.#random = world.random('network')
  }

  serve(port: number, server: Server): void {
    this.#servers.set(port, server)
  }

  /** Cuts all connections to a server. */
  cut(server: Server): void {
    for (const link of this.#links) if (link.server === server) link.cut()
  }

  /** In place of `net.connect`. */
  readonly connect = (options: { port?: number | string; timeout?: number }, done?: () => void): Socket => {
    const world = this.#world
    const socket = new Socket(world)
    if (done !== undefined) socket.once('connect', done)
    const server = this.#servers.get(Number(options.port))
    const latencyMs = this.#random.skewed(0.05, 2) + (server?.latencyMs ?? 0)
    if (server === undefined || server.reachability === 'refused') {
      const error = Object.assign(new Error(`connect ECONNREFUSED 127.0.0.1:${options.port}`), { code: 'ECONNREFUSED' })
      world.after(latencyMs, () => socket.destroy(error))
      return socket
    }
    if (server.reachability === 'hang') return socket
    const link = new Link(world, { server, socket, random: this.#random, forget: () => this.#links.delete(link) })
    this.#links.add(link)
    world.after(latencyMs, () => link.open())
    return socket
  }
}

type LinkParts = {
  readonly server: Server
  readonly socket: Socket
  readonly random: Random
  readonly forget: () => void
}

/** One connection. */
export class Link {
  readonly #world: World
  readonly #socket: Socket
  readonly #random: Random
  readonly #forget: () => void
  readonly server: Server
  /** The process that made it. */
  readonly owner: Owner
  #peer: Peer | null = null
  #lastToServerMs = 0
  #lastToClientMs = 0
  #isCut = false
  #isClosed = false
  /** Called with what the client writes, when it writes it. */
  onWrite: (bytes: Buffer) => void = () => {}

  constructor(world: World, { server, socket, random, forget }: LinkParts) {
    this.#world = world
    this.#socket = socket
    this.#random = random
    this.#forget = forget
    this.server = server
    this.owner = world.owner()
    socket.link = this
    this.owner.ends.add(this.closedByClient)
  }

  get isCut(): boolean {
    return this.#isCut
  }

  get isOpen(): boolean {
    return !this.#isCut && !this.#isClosed
  }

  open(): void {
    if (!this.isOpen || this.#socket.destroyed) return
    this.#socket.opened()
    this.#world.after(0, () => this.isOpen && this.#world.as(this.#world.outside, () => this.#accept()))
  }

  #accept(): void {
    this.#peer = this.server.accept(this)
  }

  #latency = (): number => this.server.latencyMs + this.#random.skewed(0.02, 1)

  fromClient(bytes: Buffer): void {
    this.onWrite(bytes)
    for (const piece of this.#split(bytes)) this.#toServer(() => this.#isCut || this.#peer?.receive(piece))
  }

  /** From the server. `arrived` is called when the client has all of it. */
  write(text: string, arrived: () => void = () => {}): void {
    const pieces = this.#split(Buffer.from(text, 'latin1'))
    for (const piece of pieces)
      this.#toClient(() => {
        this.#socket.received(piece)
        if (piece === pieces.at(-1)) arrived()
      })
  }

  /** The server ends the connection after what it has written. */
  end = (): void => this.#toClient(() => this.#socket.ended())

  /** Arrives after what was sent before, unless the connection is cut or closed by then. */
  #toClient(receive: () => void): void {
    this.#lastToClientMs = Math.max(this.#lastToClientMs, this.#world.nowMs + this.#latency())
    this.#world.at(this.#lastToClientMs, () => this.isOpen && receive(), this.owner)
  }

  #toServer(receive: () => void): void {
    this.#lastToServerMs = Math.max(this.#lastToServerMs, this.#world.nowMs + this.#latency())
    this.#world.at(this.#lastToServerMs, receive, this.#world.outside)
  }

  /**
   * Nothing more arrives at either end. The client learns that soon, or by its keepalive. TCP asks nothing while
   * bytes of the client are on the way, but repeats them for longer than anybody waits.
   */
  cut(): void {
    if (!this.isOpen) return
    this.#isCut = true
    this.#forget()
    this.#world.after(0, () => this.#peer?.closed(), this.#world.outside)
    const isSilent = this.#random.chance(0.3)
    const code = isSilent ? 'ETIMEDOUT' : 'ECONNRESET'
    const noticedAfterMs = isSilent ? this.#timesOutAfterMs() : this.#latency()
    if (noticedAfterMs === null) return
    const error = Object.assign(new Error(`read ${code}`), { code })
    this.#world.after(noticedAfterMs, () => this.#socket.destroy(error), this.owner)
  }

  #timesOutAfterMs(): number | null {
    const { keepAliveMs } = this.#socket
    return keepAliveMs === 0 || this.#lastToServerMs > this.#world.nowMs ? null : keepAliveMs + keepAliveAsksMs
  }

  /** The client has closed it: the server learns that after what was written before. */
  readonly closedByClient = (): void => {
    if (this.#isClosed) return
    this.#isClosed = true
    this.owner.ends.delete(this.closedByClient)
    this.#forget()
    if (!this.#isCut) this.#toServer(() => this.#peer?.closed())
  }

  /** Most bytes arrive together. */
  #split(bytes: Buffer): Buffer[] {
    if (bytes.length < 2 || !this.#random.chance(0.1)) return [bytes]
    const place = 1 + this.#random.below(bytes.length - 1)
    return [bytes.subarray(0, place), bytes.subarray(place)]
  }
}

/** The client's end, with the parts of `net.Socket` that Postern and its libraries use. */
export class Socket extends Duplex {
  readonly #world: World
  #timeoutMs = 0
  #timer: Planned = { isCancelled: true }
  link: Link | null = null
  connecting = true
  /** After so long without a byte TCP asks whether the other end is there; 0 for never. */
  keepAliveMs = 0
  readonly remoteAddress = '127.0.0.1'
  readonly localAddress = '127.0.0.1'

  constructor(world: World) {
    super({ allowHalfOpen: false })
    this.#world = world
  }

  opened(): void {
    this.connecting = false
    this.#active()
    this.emit('connect')
    this.emit('ready')
  }

  received(bytes: Buffer): void {
    if (this.destroyed) return
    this.#active()
    this.push(bytes)
  }

  ended(): void {
    if (!this.destroyed) this.push(null)
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.connecting) {
      this.once('connect', () => this._write(bytes, _encoding, done))
      return
    }
    this.#active()
    this.link?.fromClient(bytes)
    done()
  }

  override _writev(parts: { chunk: Buffer; encoding: BufferEncoding }[], done: () => void): void {
    this._write(Buffer.concat(parts.map(({ chunk }) => chunk)), 'binary', done)
  }

  override _final(done: () => void): void {
    done()
    this.link?.closedByClient()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#timer.isCancelled = true
    this.link?.closedByClient()
    done(error)
  }

  setTimeout(ms: number, listener?: () => void): this {
    if (listener !== undefined) this.once('timeout', listener)
    this.#timeoutMs = ms
    this.#active()
    return this
  }

  #active(): void {
    this.#timer.isCancelled = true
    if (this.#timeoutMs > 0 && !this.destroyed)
      this.#timer = this.#world.after(this.#timeoutMs, () => this.emit('timeout'))
  }

  destroySoon(): void {
    this.end(() => this.destroy())
  }

  setNoDelay = (): this => this
  setKeepAlive(isOn: boolean, delayMs: number): this {
    this.keepAliveMs = isOn ? delayMs : 0
    return this
  }
  ref = (): this => this
  unref = (): this => this
}
