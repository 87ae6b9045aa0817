/**
 * Posts alerts to the operators' receiver when a condition begins and when it has ended. Every process looks;
 * they share one state in the database, and the process that changes it first posts. While the database does
 * not answer, each process alerts of that by itself.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Emit } from '../../observe/events.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import type { OperationRunner } from '../operations.ts'
import { type Alert, type AlertState, noAlerts, stepAlerts, withoutSent } from './alerts.ts'

type AlerterDeps = {
  readonly store: Pick<Store, 'findCheck' | 'swapCheck' | 'now'>
  /** With the access of an admin of the whole service. */
  readonly runner: OperationRunner
  /** Never rejects. */
  readonly post: (alert: Alert) => Promise<{ readonly isTaken: boolean; readonly result: string }>
  readonly emit: Emit
  readonly everyMs?: number
}

const usualEveryMs = 10_000
/** A process that starts with the database would alert of what is over in a moment. */
const looksBefore = 2

export class Alerter {
  readonly #deps: AlerterDeps
  /** The alerts of this process while it could not read the shared state. */
  #own: AlertState = noAlerts
  #failedLooks = 0
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(deps: AlerterDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => {
        if (!this.#isStopped) this.start()
      })
    }, this.#deps.everyMs ?? usualEveryMs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#looking
  }

  async #look(): Promise<void> {
    try {
      await this.#lookAtStatus()
      this.#failedLooks = 0
      await this.#postOwn([])
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) return this.#deps.emit({ kind: 'bug', doing: 'sending alerts', error })
      this.#failedLooks += 1
      if (this.#failedLooks < looksBefore) return
      const message = `The database does not answer: ${error.message}. Requests are answered 503, and nothing is sent.`
      await this.#postOwn([{ kind: 'store_failing', message, apps: [], urgent: true }])
    }
  }

  async #lookAtStatus(): Promise<void> {
    const { runner, store } = this.#deps
    const status = await runner.call('status.show', {})
    if (!status.ok) return
    const kept = await store.findCheck('alerts')
    const before = (kept?.result ?? noAlerts) as AlertState
    const { state, due } = stepAlerts(before, status.value.attention, store.now())
    if (isDeepStrictEqual(state, before) || !(await store.swapCheck('alerts', kept?.result ?? null, state))) return
    const sent = await this.#post(due)
    if (sent.size > 0) await this.#forget(sent)
  }

  /** Another process may change the state meanwhile. An alert that stays is sent twice. */
  async #forget(sent: ReadonlySet<string>): Promise<void> {
    const { store } = this.#deps
    for (let tries = 0; tries < 5; tries++) {
      const kept = await store.findCheck('alerts')
      if (kept === null) return
      const after = withoutSent(kept.result as AlertState, sent)
      if (await store.swapCheck('alerts', kept.result, after)) return
    }
  }

  async #postOwn(found: Parameters<typeof stepAlerts>[1]): Promise<void> {
    const { state, due } = stepAlerts(this.#own, found, this.#deps.store.now())
    this.#own = withoutSent(state, await this.#post(due))
  }

  async #post(due: readonly Alert[]): Promise<ReadonlySet<string>> {
    const sent = new Set<string>()
    for (const alert of due) {
      if (this.#isStopped) break
      const { isTaken, result } = await this.#deps.post(alert)
      if (isTaken) sent.add(alert.id)
      this.#deps.emit({ kind: 'alert_tried', condition: alert.kind, isTaken, result })
    }
    return sent
  }
}
