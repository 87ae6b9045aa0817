/** Claims of the process that has the worker lock. The first one takes back what a dead process held. */
import type { Claimed, ClaimRequest } from '../../store.ts'
import { WorkerLock } from '../engine/worker-lock.ts'
import type { ClaimCall, ClaimResult } from '../queue/claim.ts'
import type { WriterThread } from './threads.ts'

const standingBy: Claimed = {
  claims: [],
  apps: new Map(),
  areLeasesValid: () => true,
  standby: true,
  deathIsKnown: true,
  suspects: false,
  lost: [],
  ended: [],
}

export class LockedClaims {
  readonly #lock: WorkerLock
  readonly #writer: WriterThread
  /** How often the lock was taken: more than once only if its file was deleted or replaced. */
  #takes = 0
  #allVoid = false

  constructor(path: string, writer: WriterThread) {
    this.#lock = new WorkerLock(path)
    this.#writer = writer
  }

  async claimDue(request: ClaimRequest): Promise<Claimed> {
    const lock = this.#lock.tryTake()
    if (lock === 'not_held') return standingBy
    if (lock !== 'held') {
      this.#takes += 1
      this.#allVoid = lock === 'taken' // otherwise leases lapse
    }
    const take = this.#takes
    const call: ClaimCall = { request, allVoid: this.#allVoid }
    this.#allVoid = false // at once: a second claim must not void what the first one hands out
    try {
      const result = (await this.#writer.call({ name: 'claimDue', args: [call] })) as ClaimResult
      return { ...result, areLeasesValid: () => this.#takes === take, standby: false, deathIsKnown: true }
    } catch (error) {
      this.#allVoid ||= call.allVoid
      throw error
    }
  }

  /** Call it when the writer has ended: another process may send from then on. */
  close(): void {
    this.#lock.release()
  }
}
