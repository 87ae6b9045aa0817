/**
 * Plays the plan of one run: starts the processes, lets the apps ask, injects the faults, and closes the
 * accounts.
 */
import { namedEmail, type Reference } from '../src/domain/delivery/reference.ts'
import { dayMs, hourMs, minuteMs } from '../src/domain/duration.ts'
import { newSecretKey } from '../src/store/crypto/key-ring.ts'
import { Accounts } from './accounts.ts'
import { Callers, type Sender, type Senders } from './callers.ts'
import type { Disk } from './disk.ts'
import { Ledger } from './ledger.ts'
import type { Network } from './network.ts'
import { makeCrowd, makeSenders, Operators, webhookPort } from './operators.ts'
import { type Busy, type Fault, makePlan, processes, relays } from './plan.ts'
import { PosternProcess, type Running } from './process.ts'
import { SimulatedReceiver } from './receiver.ts'
import { connectionsMax, type RelayEvents, type RelayFault, SimulatedRelay } from './relay.ts'
import type { World } from './world.ts'

type Parts = { readonly world: World; readonly network: Network; readonly disk: Disk; readonly path: string }

type DiesAt = Extract<Fault['kind'], `kill_at_${string}`>
type People = {
  readonly callers: Callers
  readonly crowd: readonly Sender[]
  readonly operators: Operators
  readonly senders: Senders
}

/** The queue is empty so soon after the last fault: links live for an hour at most. */
const drainMaxMs = 100 * minuteMs
/** Webhooks wait for five minutes at most between two tries. */
const webhooksMaxMs = 2 * hourMs
const leapMs = 20_000
/** Faults that leave every process and the disk alone. */
const isOutside: ReadonlySet<Fault['kind']> = new Set(['restart', 'cut', 'relay', 'relays', 'receiver', 'operator'])
/** Relays for which a process waits: they do not reply, or a connection may end without its notice. */
const keepsWaiting: ReadonlySet<RelayFault> = new Set(['holds', 'stalls', 'slow', 'loses_reply', 'cuts_data'])

const readEmailId = (messageId: string): string => namedEmail(messageId as Reference)

export class Run {
  readonly #world: World
  readonly #disk: Disk
  readonly #network: Network
  readonly #relays: readonly SimulatedRelay[]
  readonly #receiver: SimulatedReceiver
  readonly #processes: readonly PosternProcess[]
  readonly #ledger: Ledger
  readonly #accounts: Accounts
  readonly faults: Record<string, number> = {}
  /** The process that dies when the next of these happens. */
  #dies: { at: DiesAt; process: PosternProcess } | null = null

  constructor({ world, network, disk, path }: Parts) {
    this.#world = world
    this.#network = network
    this.#disk = disk
    this.#ledger = new Ledger(world, path)
    this.#accounts = new Accounts(world, this.#ledger)
    const events: RelayEvents = {
      onHandOver: (messageId, owner, link) => this.#ledger.handedOver(readEmailId(messageId), owner, link),
      onAccepted: (copy) => {
        this.#ledger.copied(readEmailId(copy.messageId), copy)
        this.#die('kill_at_accept')
      },
      onRefused: (messageId, relay) => this.#ledger.refused(readEmailId(messageId), relay),
      onAnswered: () => this.#die('kill_at_answer'),
    }
    this.#relays = Array.from(
      { length: relays },
      (_, n) => new SimulatedRelay(world, network, { name: `relay-${n}`, port: 2500 + n, events }),
    )
    this.#receiver = new SimulatedReceiver(world, network, { port: webhookPort, ledger: this.#ledger })
    const env = {
      POSTERN_DATABASE_URL: `sqlite:${path}`,
      POSTERN_SECRET_KEYS: newSecretKey('simulation'),
      POSTERN_SMTP_URL: this.#relays
        .map((_, n) => `smtp://127.0.0.1:${2500 + n}?connections=${connectionsMax}`)
        .join(' '),
      POSTERN_CONSOLE_LISTEN: 'off',
      POSTERN_APP_WEBHOOKS_PRIVATE: 'yes',
      POSTERN_ROLES: 'api,worker',
      POSTERN_LOG_LEVEL: 'silent',
    }
    this.#processes = Array.from({ length: processes }, (_, n) => new PosternProcess(world, `process-${n}`, env))
  }

  get counts(): Record<string, number> {
    return this.#ledger.counts
  }

  /** The process that was chosen dies when its own event has ended. */
  #die(at: DiesAt): void {
    const dies = this.#dies
    const isMine = at === 'kill_at_accept' || dies?.process.owner === this.#world.owner()
    if (dies === null || dies.at !== at || !isMine) return
    this.#dies = null
    this.#ledger.failedAtMs = this.#world.nowMs
    this.#world.after(0, () => dies.process.kill(), this.#world.outside)
  }

  async play(days: number, faultsMax: number): Promise<void> {
    const world = this.#world
    const plan = makePlan(world, days, faultsMax)
    for (const process of this.#processes) {
      process.start()
      await world.run(() => process.running !== null)
    }
    const ledger = this.#ledger
    world.note(`${ledger.depth} emails`) // opens the database outside the processes
    this.#disk.onCommit = () => {
      ledger.committed()
      this.#die('kill_at_commit')
    }
    const crowd = await this.#make(makeCrowd)
    const senders = await this.#make(makeSenders)
    const callers = new Callers(world, ledger, this.#processes)
    const operators = new Operators(world, { ledger, processes: this.#processes, senders })
    for (const busy of plan) await this.#play(busy, { callers, crowd, operators, senders })
    world.leap(days * dayMs - world.nowMs)
  }

  async #make<Made>(make: (running: Running) => Promise<Made>): Promise<Made> {
    const made: Made[] = []
    this.#processes[0]?.ask(make, (one) => made.push(one))
    await this.#world.run(() => made.length > 0)
    return made[0] as Made
  }

  async #play(busy: Busy, { callers, crowd, operators, senders }: People): Promise<void> {
    const [world, ledger] = [this.#world, this.#ledger]
    if (busy.beginsAtMs > world.nowMs) world.leap(busy.beginsAtMs - world.nowMs)
    ledger.disturb()
    ledger.isPrompt = true
    callers.askAgain()
    // Timers that were late have caught up.
    let begunAtMs = world.nowMs
    await world.run(() => world.nowMs - begunAtMs > 2000)
    begunAtMs = world.nowMs
    if (busy.faults.length === 0) ledger.calmSinceMs = begunAtMs - 10 * minuteMs
    const endMs = begunAtMs + busy.lastsMs
    const random = world.random(`load ${busy.beginsAtMs}`)
    const ask = () => {
      if (world.nowMs >= endMs) return
      callers.ask(random.pick(Object.values(senders)))
      world.after((1000 / busy.rate) * random.between(0.1, 1.9), ask)
    }
    world.after(0, ask)
    for (const { afterMs, emails } of busy.bursts)
      world.after(afterMs, () => {
        for (let n = 0; n < emails; n++) callers.ask(n % 2 === 0 ? senders.busy : random.pick(crowd))
        // The quiet app asks while the burst is sent.
        for (let n = 0; n < 5; n++) world.after(300 * n, () => callers.ask(senders.quiet))
      })
    for (const fault of busy.faults) world.after(fault.atMs - busy.beginsAtMs, () => this.#inject(fault, operators))
    await world.run(() => world.nowMs >= endMs)
    await this.#drain(callers)
    this.#accounts.close()
  }

  /**
   * Until all faults have ended and the queue is empty. The machine leaps over times in which nothing is
   * due.
   */
  async #drain(callers: Callers): Promise<void> {
    const [world, ledger] = [this.#world, this.#ledger]
    const endedAtMs = world.nowMs
    await world.run(() => {
      world.require(world.nowMs - endedAtMs < drainMaxMs, () => 'drain: faults or requests do not end')
      return ledger.faultsActive === 0 && callers.isIdle
    })
    this.#dies = null
    world.setDrift(0)
    const begunAtMs = world.nowMs
    while (ledger.depth > 0) {
      const until = world.nowMs + 1000
      await world.run(() => world.nowMs > until || ledger.depth === 0)
      world.require(world.nowMs - begunAtMs < drainMaxMs, () => `drain: ${ledger.depth} emails are left`)
      const dueAt = ledger.nextDueAt()
      if (dueAt !== null) world.leap(Math.min(leapMs, dueAt - world.wallMs() - 1000))
    }
    const emptyAtMs = world.nowMs
    while (ledger.webhooksWait()) {
      const until = world.nowMs + 2000
      await world.run(() => world.nowMs > until)
      world.require(world.nowMs - emptyAtMs < webhooksMaxMs, () => 'drain: a webhook is left')
      world.leap(3 * leapMs)
    }
    const settledAtMs = world.nowMs + 1000
    await world.run(() => {
      world.require(world.nowMs - settledAtMs < minuteMs, () => 'drain: a process does not start')
      return world.nowMs > settledAtMs && this.#processes.every(({ running }) => running !== null)
    })
    // A process that stood still has accepted another one meanwhile.
    if (ledger.depth > 0) await this.#drain(callers)
  }

  /** Something is wrong for a while. */
  #during(ms: number, end: () => void): void {
    const fails = this.#ledger.failedAtMs === this.#world.nowMs
    this.#ledger.faultsActive += 1
    this.#world.after(ms, () => {
      this.#ledger.faultsActive -= 1
      this.#ledger.disturb()
      if (fails) this.#ledger.failedAtMs = this.#world.nowMs
      end()
    })
  }

  #inject(fault: Fault, operators: Operators): unknown {
    const world = this.#world
    const name =
      'fault' in fault ? `${fault.kind} ${fault.fault}` : 'action' in fault ? `operator ${fault.action}` : fault.kind
    this.faults[name] = (this.faults[name] ?? 0) + 1
    world.note(`fault ${JSON.stringify(fault)}`)
    const clock = ['suspend', 'clock', 'drift'].includes(fault.kind)
    const time = clock || ['freeze', 'leap'].includes(fault.kind)
    this.#ledger.disturb({ clock, time })
    if (!isOutside.has(fault.kind)) this.#ledger.failedAtMs = world.nowMs
    if (fault.kind === 'cut' || (fault.kind === 'relay' && keepsWaiting.has(fault.fault))) this.#ledger.isPrompt = false
    const chosen = 'process' in fault ? this.#processes[fault.process] : undefined
    switch (fault.kind) {
      case 'kill':
        return chosen?.kill()
      case 'kill_at_commit':
      case 'kill_at_accept':
      case 'kill_at_answer':
        if (chosen !== undefined) this.#dies = { at: fault.kind, process: chosen }
        return null
      case 'power':
        for (const process of this.#processes) process.kill()
        return null
      case 'cut':
        for (const { server } of this.#relays) this.#network.cut(server)
        return null
      case 'restart':
        return chosen?.stop(fault.graceMs)
      case 'freeze':
        chosen?.freeze(fault.ms)
        return this.#during(fault.ms, () => this.#ledger.disturb({ time: true }))
      case 'leap':
        return world.leap(fault.ms)
      case 'suspend':
      case 'clock':
        world.wallOffsetMs += fault.ms
        return this.#ledger.disturb({ clock, time })
      case 'drift':
        world.setDrift(fault.by)
        return null
      case 'disk':
        this.#disk.fault = fault.fault
        return this.#during(fault.ms, () => {
          if (this.#disk.fault === fault.fault) this.#disk.fault = null
        })
      case 'slow_disk':
        this.#disk.writeMs = fault.writeMs
        return this.#during(fault.ms, () => {
          if (this.#disk.writeMs === fault.writeMs) this.#disk.writeMs = 0
        })
      case 'relay': {
        const relay = this.#relays[fault.relay]
        relay?.setFault(fault.fault)
        return this.#during(fault.ms, () => relay?.fault === fault.fault && relay.setFault(null))
      }
      case 'relays':
        for (const [n, relay] of this.#relays.entries()) relay.setFault(fault.faults[n] ?? null)
        return this.#during(fault.ms, () => {
          for (const [n, relay] of this.#relays.entries()) if (relay.fault === fault.faults[n]) relay.setFault(null)
        })
      case 'receiver':
        this.#receiver.setFault(fault.fault)
        return this.#during(fault.ms, () => this.#receiver.fault === fault.fault && this.#receiver.setFault(null))
      case 'operator':
        return operators.act(fault.action)
      default:
        return fault satisfies never
    }
  }

  end(): void {
    for (const process of this.#processes) {
      process.restarts = false
      process.kill()
    }
    this.#ledger.close()
  }
}
