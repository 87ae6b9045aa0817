/** A node: a process of the service, as it describes itself in the store every few seconds. */
import type { RelayState } from '../delivery/relay-state.ts'
import type { NodeId } from '../id.ts'

export type NodeRecord = {
  readonly id: NodeId
  readonly machine: string
  readonly version: string
  readonly roles: readonly string[]
  readonly startedAt: number
  readonly seenAt: number
  readonly relays: readonly RelayState[]
  readonly faults: readonly NodeFault[]
}

/** Something that a process cannot do now. */
export type NodeFault = {
  /** `log`: write its log; `queueing`: queue the emails of requests. */
  readonly what: (typeof nodeFaults)[number]
  readonly since: number
  readonly reason: string
}
export const nodeFaults = ['log', 'queueing'] as const

/** A node that has not been seen for this long is silent: it died, hangs, or has lost the database. */
export const nodeSilentMs = 30_000

export const isAlive = ({ seenAt }: Pick<NodeRecord, 'seenAt'>, nowMs: number): boolean => nowMs - seenAt < nodeSilentMs
