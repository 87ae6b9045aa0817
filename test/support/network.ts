/** A network namespace that stands for another machine: it can vanish without a word. */
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { toolPath } from './installed.ts'
import { atEnd, type Scope } from './temporary.ts'

const [ipTool, tcTool] = [toolPath('ip'), toolPath('tc')]

export type Machine = {
  /** The address of this machine as the other one sees it. */
  readonly hostAddress: string
  /** Runs a command there. */
  readonly under: readonly string[]
  /** From now on, every packet that comes from there is dropped. */
  vanish(): void
  /** Every packet to its own loopback is dropped: connections there hang. */
  deafen(): void
}

const ip = (...args: string[]): void => void execFileSync(ipTool, args, { stdio: 'pipe' })
const noPackets = ['root', 'pfifo', 'limit', '0']

export function makeMachine(scope: Scope): Machine {
  const name = `pstn${process.pid}${randomInt(100)}`
  const [ours, theirs] = [`${name}a`, `${name}b`]
  const net = `10.99.${randomInt(256)}`
  const inside = (...args: string[]) => ip('netns', 'exec', name, ...args)
  ip('netns', 'add', name)
  atEnd(scope, () => {
    // The link first: with the namespace, the kernel removes it at a time of its own.
    if (existsSync(`/sys/class/net/${ours}`)) ip('link', 'del', ours)
    ip('netns', 'del', name)
  })
  ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs)
  ip('link', 'set', theirs, 'netns', name)
  ip('addr', 'add', `${net}.1/30`, 'dev', ours)
  ip('link', 'set', ours, 'up')
  inside(ipTool, 'addr', 'add', `${net}.2/30`, 'dev', theirs)
  inside(ipTool, 'link', 'set', theirs, 'up')
  inside(ipTool, 'link', 'set', 'lo', 'up')
  return {
    hostAddress: `${net}.1`,
    under: [ipTool, 'netns', 'exec', name],
    // Not on our side: the kernel does not count probes that its own machine drops.
    vanish: () => inside(tcTool, 'qdisc', 'add', 'dev', theirs, ...noPackets),
    deafen: () => inside(tcTool, 'qdisc', 'add', 'dev', 'lo', ...noPackets),
  }
}
