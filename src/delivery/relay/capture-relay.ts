/** The relay of dev mode: keeps the newest messages in memory for the inbox, and sends nothing. */
import { EventEmitter, once } from 'node:events'
import { captureRelayName } from '../../domain/delivery/relay-state.ts'
import { parseReply } from '../../domain/delivery/smtp-reply.ts'
import type { Message, MessageDetails, Relay, Submission } from './relay.ts'

export type CapturedEmail = MessageDetails & {
  readonly to: string
  readonly raw: Buffer
  readonly receivedAt: number
  /** Counts the captures: a later one is larger. */
  readonly seq: number
  /** Whether its page was opened. */
  readonly seen: boolean
}

export const capturedMax = 500
/** They take no time. */
const submissionsMax = 10

export class CaptureRelay implements Relay {
  readonly name = captureRelayName
  readonly takesReserved = true
  readonly certificateExpiresAt = null
  readonly #emails = new Map<string, CapturedEmail>()
  readonly #captures = new EventEmitter().setMaxListeners(0)
  #seq = 0

  isAvailable = (): boolean => true
  capacity = (): number => submissionsMax
  inProgress = (): number => 0
  free = (): number => submissionsMax
  connections = () => ({ connecting: 0, open: 0, busy: 0, allowed: submissionsMax, max: submissionsMax })
  probeInMs = (): number => 0
  isLast = (): boolean => false
  isStuck = (): boolean => false

  async submit({ to, bytes, describe }: Message): Promise<Submission> {
    const email = describe()
    this.#emails.delete(email.id)
    const seq = ++this.#seq
    this.#emails.set(email.id, { ...email, to, raw: bytes, receivedAt: Date.now(), seq, seen: false })
    const [oldest] = this.#emails.keys()
    if (this.#emails.size > capturedMax && oldest !== undefined) this.#emails.delete(oldest)
    this.#captures.emit('captured')
    return { kind: 'accepted', reply: parseReply('250 captured (dev mode)') }
  }

  /** The number of the newest capture; 0 before the first. */
  get seq(): number {
    return this.#seq
  }

  /** The oldest email that fits, at once or when it comes; null if the signal ends the wait. */
  async wait(fits: (email: CapturedEmail) => boolean, signal: AbortSignal): Promise<CapturedEmail | null> {
    for (;;) {
      const found = [...this.#emails.values()].find(fits)
      if (found !== undefined) return found
      if (signal.aborted) return null
      await once(this.#captures, 'captured', { signal }).catch(() => null) // it was aborted
    }
  }

  /** Newest first. */
  list = (): CapturedEmail[] => [...this.#emails.values()].reverse()

  find = (id: string): CapturedEmail | undefined => this.#emails.get(id)

  markSeen(id: string): void {
    const email = this.#emails.get(id)
    if (email !== undefined) this.#emails.set(id, { ...email, seen: true }) // its place stays
  }

  delete(id: string): void {
    this.#emails.delete(id)
  }

  deleteAll(): void {
    this.#emails.clear()
  }

  close(): void {
    this.deleteAll()
  }
}
