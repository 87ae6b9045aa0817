/**
 * Posts alerts to the operators' receiver when a condition begins and when it has ended. All processes check;
 * they share one state in the database, and the process that changes it first posts. While the database does
 * not answer, each process reports that by itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Emit } from '../../observe/events.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import type { OperationRunner } from '../operations.ts'
import { newUnknownOutages } from '../service/outages.ts'
import { type Alert, type AlertState, alertsCheck, noAlerts, stepAlerts, toAlertState, withoutSent } from './alerts.ts'

type AlerterDeps = {
  readonly store: Pick<Store, 'findCheck' | 'swapCheck' | 'now'>
  /** With the access of an admin of the whole service. */
  readonly runner: OperationRunner
  /** Never rejects. */
  readonly post: (alert: Alert, stopped: AbortSignal) => Promise<{ readonly isTaken: boolean; readonly result: string }>
  readonly emit: Emit
  readonly everyMs?: number
  readonly deadlineMs?: number
}

const usualEveryMs = 10_000
/** A database that takes longer does not answer. */
const usualDeadlineMs = 10_000
/** Another process changes the state now and then, not all the time. */
const swapsMax = 5

export class Alerter {
  readonly #deps: AlerterDeps
  /** The alerts of this process while it could not read the shared state. */
  #own: AlertState = noAlerts
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> = Promise.resolve()
  readonly #stopped = new AbortController()

  constructor(deps: AlerterDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#checking = this.#check().finally(() => {
        if (!this.#stopped.signal.aborted) this.start()
      })
    }, this.#deps.everyMs ?? usualEveryMs)
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    clearTimeout(this.#timer)
    await this.#checking
  }

  async #check(): Promise<void> {
    try {
      await this.#withDeadline(this.#checkStatus())
      await this.#postOwn([])
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) return this.#deps.emit({ kind: 'bug', doing: 'sending alerts', error })
      const message = `The database does not answer: ${error.message}. Requests are answered 503, and nothing is sent.`
      await this.#postOwn([{ kind: 'store_failing', message, apps: [], urgent: true }])
    }
  }

  /** A check that takes longer goes on, within the deadlines of the store. */
  async #withDeadline(checking: Promise<void>): Promise<void> {
    const timer = new AbortController()
    const late = sleep(this.#deps.deadlineMs ?? usualDeadlineMs, 'late' as const, { signal: timer.signal })
    try {
      const ended = await Promise.race([checking, late.catch(() => {})])
      if (ended === 'late') throw new StoreUnavailable('a check took too long')
    } finally {
      timer.abort()
    }
  }

  async #checkStatus(): Promise<void> {
    const { runner, store } = this.#deps
    const status = await runner.call('status.show', {})
    if (!status.ok) throw new Error(`the status was not read: ${status.error.message}`)
    const kept = await store.findCheck('alerts')
    const before = toAlertState(kept)
    const { attention, nodes } = status.value
    // That the receiver does not answer is no alert.
    const found = attention.filter(({ kind, subject }) => kind !== 'check_failed' || subject !== alertsCheck)
    const { state, due } = stepAlerts(before, found, store.now(), newUnknownOutages(nodes))
    if (state === before || !(await store.swapCheck('alerts', kept?.result ?? null, state))) return
    await this.#post(due, (id) => this.#forget(id))
  }

  /** Another process may change the state meanwhile. An alert that stays is sent twice. */
  async #forget(id: string): Promise<void> {
    const { store } = this.#deps
    for (let tries = 0; tries < swapsMax; tries++) {
      const kept = await store.findCheck('alerts')
      if (kept === null) return
      const after = withoutSent(kept.result as AlertState, new Set([id]))
      if (await store.swapCheck('alerts', kept.result, after)) return
    }
  }

  async #postOwn(found: Parameters<typeof stepAlerts>[1]): Promise<void> {
    const { state, due } = stepAlerts(this.#own, found, this.#deps.store.now())
    this.#own = state
    await this.#post(due, async (id) => {
      this.#own = withoutSent(this.#own, new Set([id]))
    })
  }

  async #post(due: readonly Alert[], forget: (id: string) => Promise<void>): Promise<void> {
    for (const alert of due) {
      if (this.#stopped.signal.aborted) break
      const { isTaken, result } = await this.#deps.post(alert, this.#stopped.signal)
      this.#deps.emit({ kind: 'alert_tried', condition: alert.kind, isTaken, result })
      if (isTaken) await forget(alert.id)
    }
  }
}
