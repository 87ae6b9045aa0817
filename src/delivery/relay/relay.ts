/**
 * Where messages go: a smarthost, or the inbox of the dev mode. A relay bounds its own connections
 * and pace, and says how much it can take now; while its breaker is open that is nothing.
 */
import type { Clearance, Message, Submission } from './smtp/smtp-session.ts'

export type CapturedEmail = {
  readonly id: string
  readonly app: string
  readonly type: string
  readonly url: string
  readonly expiresAt: number
}

export interface Relay {
  /** host:port, as records and metrics name it. */
  readonly name: string
  /** Its breaker is open: it takes a probe now and then, or nothing. */
  isOpen(): boolean
  /** How many submissions may be under way at once, those that are included. */
  capacity(): number
  /** How many more may begin now. */
  free(): number
  /** Milliseconds until the breaker lets a probe through; 0 while it is closed. */
  probeInMs(): number
  /** Call it only while one is free. */
  submit(message: Message, clearance: Clearance, email: CapturedEmail): Promise<Submission>
  /** Gives up what is under way and ends its sessions. */
  close(): void
}
