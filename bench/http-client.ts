import { connect, type Socket } from 'node:net'

/**
 * One connection: sends a request and returns the status. Answers must have a `Content-Length`. A raw socket,
 * because a client library would use more CPU than a small server does.
 */
export class HttpClient {
  readonly #socket: Socket
  #pending = ''
  #onStatus: (status: string) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#read(chunk.toString('latin1')))
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => this.#onStatus('closed'))
  }

  /** @param from the address of this machine that the connection comes from */
  static open(port: number, from = '127.0.0.1'): Promise<HttpClient> {
    return new Promise((resolve, reject) => {
      const address = { port, host: '127.0.0.1', localAddress: from }
      const socket = connect(address, () => resolve(new HttpClient(socket)))
      socket.once('error', reject)
    })
  }

  #read(text: string): void {
    this.#pending += text
    const head = this.#pending.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.#pending)?.[1] ?? 0)
    if (this.#pending.length < head + 4 + length) return
    const status = this.#pending.slice(9, 12)
    this.#pending = this.#pending.slice(head + 4 + length)
    this.#onStatus(status)
  }

  /** The status, or `closed` if the server ends the connection. */
  ask(request: string): Promise<string> {
    if (this.#socket.destroyed) return Promise.resolve('closed')
    return new Promise((resolve) => {
      this.#onStatus = resolve
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}
