/** One process of Postern: the whole service, without its HTTP listeners. It dies, and is started again. */
import { pino } from 'pino'
import { composeManagement } from '../src/compose/management.ts'
import { type Service, startService } from '../src/compose/service.ts'
import { composeIntake } from '../src/compose/web.ts'
import { parseConfig } from '../src/config/parse-config.ts'
import { type AcceptAnswer, type AcceptDeps, acceptEmail } from '../src/intake/accept-email.ts'
import type { IncomingRequest } from '../src/intake/judge-request.ts'
import { localAccess } from '../src/management/operation/access.ts'
import type { OperationRunner } from '../src/management/operations.ts'
import { newLocalRunner } from '../src/management/perform.ts'
import { newOwner, type Owner, type World } from './world.ts'

export type Running = { readonly service: Service; readonly intake: AcceptDeps; readonly operations: OperationRunner }

export class PosternProcess {
  readonly #world: World
  readonly #name: string
  readonly #env: Readonly<Record<string, string>>
  #starts = 0
  /** Whether it is started again when it has ended. */
  restarts = true
  owner: Owner
  running: Running | null = null

  constructor(world: World, name: string, env: Readonly<Record<string, string>>) {
    this.#world = world
    this.#name = name
    this.#env = env
    this.owner = newOwner(`${name}.0`)
  }

  start(): void {
    this.owner = newOwner(`${this.#name}.${++this.#starts}`)
    const { owner } = this
    this.#world.note(`${owner.name} starts`)
    this.#world.after(0, () => void this.#run(owner).catch((error) => this.#failed(owner, error)), owner)
  }

  async #run(owner: Owner): Promise<void> {
    const world = this.#world
    const composed: Omit<Running, 'service'>[] = []
    const service = await startService(parseConfig(this.#env, 'serve'), {
      version: 'simulated',
      log: pino({ level: 'silent' }),
      onFatal: () => this.kill(),
      listeners: (context, delivery) => {
        const { config, events, store, version } = context
        events.subscribe((event) => {
          if (event.kind === 'bug') world.fail(new Error(`a bug: ${event.doing}`, { cause: event.error }))
        })
        const onQueued = () => delivery?.wake()
        const management = composeManagement(config, { store, version, emit: events.emit, onQueued })
        const operations = newLocalRunner(management, localAccess('simulation'))
        composed.push({ intake: composeIntake(context, delivery), operations })
        return []
      },
    })
    const [parts] = composed
    if (parts === undefined) throw new Error('the service has no listeners')
    if (owner === this.owner) this.running = { service, ...parts }
    world.note(`${owner.name} is ready`)
  }

  /** A service that cannot start ends, and is started again. */
  #failed(owner: Owner, error: unknown): void {
    this.#world.note(`${owner.name} cannot start: ${(error as Error).name}`)
    if (owner === this.owner) this.kill()
  }

  kill(): void {
    if (!this.owner.isAlive) return
    this.running = null
    this.#world.kill(this.owner)
    this.#startAgain()
  }

  /** Asks it to stop, as an upgrade does. */
  stop(graceMs: number): void {
    const { owner, running } = this
    if (running === null || !owner.isAlive) return
    this.running = null
    owner.mayEndFromMs = this.#world.nowMs + graceMs
    this.#world.note(`${owner.name} stops`)
    const stopped = () => owner.isAlive && this.kill()
    this.#world.as(
      owner,
      () => void running.service.stop({ graceMs }).then(stopped, (error) => this.#world.fail(error)),
    )
  }

  #startAgain(): void {
    const begun = this.#starts
    const start = () => {
      if (this.restarts && this.#starts === begun) this.start()
    }
    this.#world.after(1000, start, this.#world.outside)
  }

  freeze(ms: number): void {
    this.#world.note(`${this.owner.name} freezes for ${ms.toFixed(0)} ms`)
    this.owner.frozenUntilMs = Math.max(this.owner.frozenUntilMs, this.#world.nowMs + ms)
  }

  request(incoming: IncomingRequest, answered: (answer: AcceptAnswer) => void): void {
    this.ask(({ intake }) => acceptEmail(intake, incoming), answered)
  }

  /** Does work in the process. `done` is called in the world outside; never if the process dies. */
  ask<Result>(work: (running: Running) => Promise<Result>, done: (result: Result) => void): void {
    const { owner, running } = this
    if (running === null) return
    const world = this.#world
    const run = async () => {
      const result = await work(running)
      world.after(0.2, () => done(result), world.outside)
    }
    world.after(0.2, () => void run().catch((error) => world.fail(error)), owner)
  }
}
