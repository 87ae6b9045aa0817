/** The receiver of an app's webhooks: an HTTP server that answers, or does not. */
import type { Ledger } from './ledger.ts'
import type { Link, Network, Peer, Server } from './network.ts'
import type { World } from './world.ts'

export const receiverFaults = ['fails', 'hangs', 'cuts', 'refused'] as const
export type ReceiverFault = (typeof receiverFaults)[number]

export class SimulatedReceiver {
  readonly #world: World
  readonly #ledger: Ledger
  readonly server: Server
  fault: ReceiverFault | null = null

  constructor(world: World, network: Network, { port, ledger }: { port: number; ledger: Ledger }) {
    this.#world = world
    this.#ledger = ledger
    this.server = { reachability: 'open', latencyMs: 0, accept: (link) => this.#accept(link) }
    network.serve(port, this.server)
  }

  setFault(fault: ReceiverFault | null): void {
    this.fault = fault
    this.server.reachability = fault === 'refused' ? 'refused' : 'open'
  }

  #accept(link: Link): Peer {
    let text = ''
    const receive = (bytes: Buffer) => {
      text += bytes.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0)
      if (head < 0 || text.length < head + 4 + length) return
      const id = /webhook-id: *(\S+)/i.exec(text)?.[1] ?? ''
      if (this.fault === 'hangs') return
      if (this.fault === 'cuts') return link.cut()
      const status = this.fault === 'fails' ? '500 No' : '200 OK'
      this.#world.note(`webhook ${id} ${status}`)
      if (this.fault !== 'fails') this.#ledger.receivedWebhook(text.slice(head + 4))
      link.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
      link.end()
    }
    return { receive, closed: () => {} }
  }
}
