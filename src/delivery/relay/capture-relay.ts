/**
 * The relay of the dev mode: keeps the newest messages in memory, for the inbox, and sends nothing.
 */
import type { CapturedEmail, Relay } from './relay.ts'
import type { Clearance, Message, Submission } from './smtp/smtp-session.ts'

export type Captured = CapturedEmail & { readonly to: string; readonly raw: Buffer; readonly at: number }

const keptMax = 500

export class CaptureRelay implements Relay {
  readonly name = 'capture'
  readonly #emails = new Map<string, Captured>()

  isOpen = (): boolean => false
  capacity = (): number => 10
  free = (): number => 10
  probeInMs = (): number => 0

  async submit(message: Message, _clearance: Clearance, email: CapturedEmail): Promise<Submission> {
    this.#emails.delete(email.id)
    this.#emails.set(email.id, { ...email, to: message.to, raw: message.bytes, at: Date.now() })
    const [oldest] = this.#emails.keys()
    if (this.#emails.size > keptMax && oldest !== undefined) this.#emails.delete(oldest)
    return { kind: 'accepted', reply: '250 kept for the inbox' }
  }

  /** Newest first. */
  list = (): Captured[] => [...this.#emails.values()].reverse()

  find = (id: string): Captured | undefined => this.#emails.get(id)

  close(): void {
    this.#emails.clear()
  }
}
