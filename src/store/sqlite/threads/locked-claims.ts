/**
 * Claims of the process that has the worker lock. The first one takes back what a dead process held. While
 * the queue is empty and nobody has written to the database, a claim asks no thread.
 */
import type { Claimed, ClaimRequest } from '../../store.ts'
import { WorkerLock } from '../engine/worker-lock.ts'
import type { ClaimCall, ClaimResult } from '../queue/claim.ts'
import type { StoreWriter } from './threads.ts'

const nothing: Claimed = {
  claims: [],
  apps: new Map(),
  areLeasesValid: () => true,
  standby: false,
  deathIsKnown: true,
  suspects: false,
  more: false,
  elsewhere: [],
  lost: [],
  ended: [],
}
/** The writer is asked this often all the same, so that the loss of the files is noticed. */
const askEveryMs = 1000

export class LockedClaims {
  readonly #lock: WorkerLock
  readonly #writer: StoreWriter
  readonly #dataVersion: () => number
  /** The state of the database in which the queue was empty, and when. */
  #empty: { readonly version: number; readonly atMs: number } | null = null
  /** How often the lock was taken: more than once only if its file was deleted or replaced. */
  #takes = 0
  #allVoid = false

  /** @param dataVersion a number that changes with each commit */
  constructor(path: string, writer: StoreWriter, dataVersion: () => number) {
    this.#lock = new WorkerLock(path)
    this.#writer = writer
    this.#dataVersion = dataVersion
  }

  async claimDue(request: ClaimRequest): Promise<Claimed> {
    const lock = this.#lock.tryTake()
    if (lock === 'not_held') return { ...nothing, standby: true }
    if (lock !== 'held') {
      this.#takes += 1
      this.#allVoid = lock === 'taken' // otherwise leases lapse
    }
    const [atMs, version] = [performance.now(), this.#dataVersion()]
    if (lock === 'held' && this.#empty?.version === version && atMs - this.#empty.atMs < askEveryMs) return nothing
    const take = this.#takes
    const call: ClaimCall = { request, allVoid: this.#allVoid }
    this.#allVoid = false // at once: a second claim must not void what the first one hands out
    try {
      const { isEmpty, ...result } = (await this.#writer.call({ name: 'claimDue', args: [call] })) as ClaimResult
      this.#empty = isEmpty ? { version, atMs } : null
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
