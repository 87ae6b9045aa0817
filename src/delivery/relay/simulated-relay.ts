/**
 * The relay of the test sides of apps (`test-side.ts`). It sends nothing: the recipient chooses the outcome,
 * and every email that it accepts is kept for a while, for the tests of the app.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readSimulatedOutcome, type SimulatedOutcome, simulatedRelay } from '../../domain/app/test-side.ts'
import { noReply } from '../../domain/delivery/reply.ts'
import { parseReply } from '../../domain/delivery/smtp-reply.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { type Clearance, leaseLost, type Message, type Relay, type Submission, workerStopped } from './relay.ts'

const submissionsMax = 20
export const slowMs = 5000

export class SimulatedRelay implements Relay {
  readonly name = simulatedRelay
  readonly takesReserved = true
  readonly certificateExpiresAt = null
  readonly #keep: (message: Message) => Promise<void>
  readonly #stopped = new AbortController()
  #inProgress = 0

  constructor(keep: (message: Message) => Promise<void>) {
    this.#keep = keep
  }

  isAvailable = (): boolean => true
  capacity = (): number => submissionsMax
  inProgress = (): number => this.#inProgress
  free = (): number => submissionsMax - this.#inProgress
  connections = () => ({ connecting: 0, open: 0, busy: 0, allowed: submissionsMax, max: submissionsMax })
  probeInMs = (): number => 0
  isLast = (): boolean => false
  isStuck = (): boolean => false

  async submit(message: Message, clearance: Clearance): Promise<Submission> {
    this.#inProgress += 1
    try {
      return await this.#answer(message, clearance)
    } catch (error) {
      if (this.#stopped.signal.aborted) return workerStopped
      if (error instanceof StoreUnavailable) return fail('451 4.3.0 the email could not be kept')
      throw error
    } finally {
      this.#inProgress -= 1
    }
  }

  async #answer(message: Message, { deadlineMs, isLeaseValid }: Clearance): Promise<Submission> {
    const outcome = readSimulatedOutcome(message.to) ?? 'refused' // a process of an earlier version accepted it
    if (outcome === 'slow') await sleep(slowMs, undefined, { signal: this.#stopped.signal })
    if (!isLeaseValid()) return leaseLost
    if (performance.now() >= deadlineMs) return { kind: 'expired' }
    const submission = simulate(outcome, message.attempt)
    if (submission.kind === 'accepted' || outcome === 'bounced' || outcome === 'complained') await this.#keep(message)
    return submission
  }

  close(): void {
    this.#stopped.abort()
  }
}

/** @param attempt from 1 */
function simulate(outcome: SimulatedOutcome, attempt: number): Submission {
  switch (outcome) {
    case 'delivered':
    case 'slow':
      return { kind: 'accepted', reply: accepted }
    case 'deferred':
      return attempt > 1 ? { kind: 'accepted', reply: accepted } : fail('451 4.3.0 simulated, try again')
    case 'expired':
      return fail('451 4.3.0 simulated, try again')
    case 'refused':
      return fail('550 5.1.1 simulated, no such mailbox')
    case 'bounced':
      return { kind: 'simulated', state: outcome, reason: 'no_mailbox', reply: parseReply('550 5.1.1 simulated') }
    case 'complained':
      return { kind: 'simulated', state: outcome, reason: null, reply: accepted }
    case 'suppressed':
      return { kind: 'simulated', state: outcome, reason: 'no_mailbox', reply: noReply('simulated') }
    default:
      return outcome satisfies never
  }
}

const accepted = parseReply('250 2.0.0 simulated')

function fail(text: string): Submission {
  const reply = parseReply(text)
  const ofMessage = { scope: 'message', lasting: false, slowDown: null, retryAfterMs: null, ambiguous: false } as const
  return { kind: 'failed', stage: 'recipient', reply, failureClass: { ...ofMessage, permanent: reply.code === 550 } }
}
