/** The operators: they change apps, keys and emails while mail flows. */

import type { AppSettings } from '../src/domain/app/settings.ts'
import type { Result } from '../src/management/operation/result.ts'
import type { OperationRunner } from '../src/management/operations.ts'
import { writeReport } from '../test/support/reports.ts'
import { newSender, testSettings } from '../test/support/service.ts'
import type { Sender, Senders } from './callers.ts'
import type { Ledger } from './ledger.ts'
import { limitedApp, type OperatorAction } from './plan.ts'
import type { PosternProcess, Running } from './process.ts'
import type { Random } from './random.ts'
import type { Copy } from './relay.ts'
import type { World } from './world.ts'

type Parts = {
  readonly ledger: Ledger
  readonly processes: readonly PosternProcess[]
  readonly senders: Senders
}

export const webhookPort = 2580

const settings = { ...testSettings, webhookUrl: `http://127.0.0.1:${webhookPort}/` }

/** Makes an app whose webhooks are signed. */
const makeSender = async (running: Running, slug: string, more: Partial<AppSettings> = {}): Promise<Sender> => {
  const made = await newSender(running.service, slug, { ...settings, ...more })
  await running.operations.call('webhook.secret', { params: { app: slug }, body: {} })
  return made
}

/** More than a claim looks at. */
const crowdSize = 40

/** Apps that only take part in bursts. */
export async function makeCrowd(running: Running): Promise<Sender[]> {
  const crowd: Sender[] = []
  for (let n = 0; n < crowdSize; n++) crowd.push(await makeSender(running, `crowd-${n}`))
  return crowd
}

export const makeSenders = async (running: Running): Promise<Senders> => ({
  limited: await makeSender(running, 'limited', { limits: limitedApp }),
  doomed: await makeSender(running, 'doomed-0'),
  busy: await makeSender(running, 'busy', { supersede: true }),
  // Its turn comes after those of all others.
  quiet: await makeSender(running, 'quiet'),
})

export class Operators {
  readonly #world: World
  readonly #parts: Parts
  readonly #random: Random
  #doomed = 0
  #isBusyStopped = false

  constructor(world: World, parts: Parts) {
    this.#world = world
    this.#parts = parts
    this.#random = world.random('operators')
  }

  act(action: OperatorAction): void {
    const ready = this.#parts.processes.filter(({ running }) => running !== null)
    if (ready.length === 0) return
    const process = this.#random.pick(ready)
    this.#world.note(`operator ${action}`)
    this.#actions[action](process)
  }

  /** Runs operations one after another; a refusal ends them. */
  #run<Made>(
    process: PosternProcess,
    work: (operations: OperationRunner) => Promise<Result<Made>>,
    done: (made: Made) => void = () => {},
  ): void {
    const attempt = async (operations: OperationRunner) => {
      try {
        return await work(operations)
      } catch (error) {
        if ((error as Error).name !== 'StoreUnavailable') throw error
        return null
      }
    }
    process.ask(
      ({ operations }) => attempt(operations),
      (result) => {
        this.#world.note(`operator ${result === null ? 'unavailable' : result.ok ? 'done' : result.error.code}`)
        if (result?.ok) done(result.value)
      },
    )
  }

  /** Calls `act` as soon as an email is being sent, or waits. */
  #whenQueued(isSending: boolean, act: (id: string) => void, looks = 500): void {
    const id = this.#parts.ledger.pickQueued(this.#random, { isSending })
    if (id !== null) act(id)
    else if (looks > 0) this.#world.after(20, () => this.#whenQueued(isSending, act, looks - 1))
  }

  /** A report says that a copy has bounced. */
  #report(process: PosternProcess, { messageId, received: { recipient } }: Copy): void {
    this.#parts.ledger.mayBeSuppressed.add(recipient)
    const report = writeReport({ to: `bounces+${messageId}@acme.test`, recipient })
    this.#run(process, (operations) => operations.call('report.read', { body: { report } }))
  }

  readonly #actions: Readonly<Record<OperatorAction, (process: PosternProcess) => void>> = {
    disable: (process) => {
      if (this.#isBusyStopped) return
      this.#isBusyStopped = true
      const { busy } = this.#parts.senders
      const params = { app: busy.app.slug }
      const change = (status: 'active' | 'disabled') => (operations: OperationRunner) =>
        operations.call('app.change', { params, body: { status } })
      let isStarting = false
      // The answer may arrive after the app is being started again.
      this.#run(process, change('disabled'), () => isStarting || this.#parts.ledger.stopped(busy.app.slug, true))
      const enable = () => {
        const [ready] = this.#parts.processes.filter(({ running }) => running !== null)
        if (ready === undefined) return void this.#world.after(1000, enable)
        isStarting = true
        this.#parts.ledger.stopped(busy.app.slug, false)
        let isDone = false
        this.#run(ready, change('active'), () => {
          isDone = true
          this.#isBusyStopped = false
          this.#parts.ledger.disturb()
        })
        this.#world.after(5000, () => isDone || enable())
      }
      this.#world.after(this.#random.skewed(1000, 120_000), enable)
    },
    delete: (process) => {
      const { ledger, senders } = this.#parts
      const { doomed } = senders
      const params = { app: doomed.app.slug }
      ledger.deleted.add(doomed.app.slug)
      const remove = async (operations: OperationRunner) => {
        const stopped = await operations.call('app.change', { params, body: { status: 'disabled' } })
        if (!stopped.ok) return stopped
        ledger.stopped(doomed.app.slug, true)
        return operations.call('app.delete', { params })
      }
      const makeAnother = () => {
        const slug = `doomed-${++this.#doomed}`
        const make = (running: Running) => makeSender(running, slug).catch(() => doomed)
        process.ask(make, (made) => {
          senders.doomed = made
        })
      }
      this.#run(process, remove, makeAnother)
    },
    revoke: (process) => {
      const { quiet: _, ...others } = this.#parts.senders
      const sender = this.#random.pick(Object.values(others))
      const { key, keyId } = sender
      const revoke = async (operations: OperationRunner) => {
        const made = await operations.call('key.create', { params: { app: sender.app.slug }, body: {} })
        if (!made.ok) return made
        const revoked = await operations.call('key.revoke', { params: { key: keyId } })
        return revoked.ok ? made : revoked
      }
      this.#run(process, revoke, (made) => {
        Object.assign(sender, { key: made.key, keyId: made.id, revokedKey: key })
        this.#parts.ledger.revoked(key)
      })
    },
    rotate: (process) => {
      const sender = this.#random.pick(Object.values(this.#parts.senders))
      const body = { graceSeconds: 3600 }
      this.#run(
        process,
        (operations) => operations.call('key.replace', { params: { key: sender.keyId }, body }),
        (made) => Object.assign(sender, { key: made.key, keyId: made.id }),
      )
    },
    cancel: (process) =>
      this.#whenQueued(this.#random.chance(0.5), (id) => {
        const cancel = (operations: OperationRunner) => operations.call('email.cancel', { params: { email: id } })
        this.#run(process, cancel, () => this.#parts.ledger.cancelled.add(id))
      }),
    retry: (process) =>
      this.#whenQueued(true, () =>
        this.#run(process, (operations) => operations.call('email.retry_all', { body: {} })),
      ),
    bounce: (process) => {
      const copy = this.#parts.ledger.pickCopy(this.#random)
      if (copy !== null) this.#report(process, copy)
    },
    suppress: (process) => {
      const { busy } = this.#parts.senders
      const copy = this.#parts.ledger.pickCopy(this.#random)
      const to = copy?.received.recipient.endsWith('@busy.test')
        ? copy.received.recipient
        : `user${this.#random.below(300)}@busy.test`
      const days = 1 + this.#random.below(5)
      this.#parts.ledger.mayBeSuppressed.add(to)
      this.#run(
        process,
        (operations) => operations.call('suppression.add', { body: { to, app: busy.app.slug, days } }),
        () => {
          this.#parts.ledger.suppressed(to, days)
          // A report changes nothing of it.
          if (copy?.received.recipient === to && this.#random.chance(0.5)) this.#report(process, copy)
        },
      )
    },
  }
}
