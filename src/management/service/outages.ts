/** Outages of relays: pure, from what the processes say of themselves. */
import type { Outage } from '../../domain/delivery/relay-state.ts'
import { isReply, readCodes } from '../../domain/delivery/smtp-reply.ts'
import { transportOf } from '../../domain/delivery/transport.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { NodeResource } from '../resources.ts'

type SeenRelay = NodeResource['relays'][number] & Pick<NodeResource, 'machine' | 'seenAt'>

/** A relay as all workers see it. */
export type GroupedRelay = {
  readonly name: string
  readonly views: readonly SeenRelay[]
  /** The views in which it takes no mail. */
  readonly failing: readonly SeenRelay[]
  /** Whether it fails in all of them. */
  readonly isDown: boolean
  /** When the first of these began to fail, in milliseconds since 1970. */
  readonly since: number
  /** Why, as that one says; empty if none fails. */
  readonly reason: string
}

export function groupRelays(workers: readonly NodeResource[]): GroupedRelay[] {
  const seen = workers.flatMap(({ machine, relays, seenAt }) => relays.map((relay) => ({ ...relay, machine, seenAt })))
  return [...Map.groupBy(seen, ({ name }) => name)].map(([name, views]) => {
    const failing = views
      .filter(({ available }) => !available)
      .toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))
    const [first] = failing
    const since = first === undefined ? 0 : Date.parse(first.since)
    return { name, views, failing, isDown: failing.length === views.length, since, reason: first?.reason ?? '' }
  })
}

/** The relays that living workers see. */
const groupSeen = (nodes: readonly NodeResource[]): GroupedRelay[] =>
  groupRelays(nodes.filter(({ alive, roles }) => alive && roles.includes('worker')))

/** By its name, why no living worker sends mail through a relay. */
export const findDown = (nodes: readonly NodeResource[]): ReadonlyMap<string, string> =>
  new Map(groupSeen(nodes).flatMap(({ isDown, name, reason }) => (isDown ? [[name, reason] as const] : [])))

/** Those that send the mail of apps without a transport of their own. */
export const ofService = <Named extends { readonly name: string }>(relays: readonly Named[]): Named[] =>
  relays.filter(({ name }) => transportOf(name) === null)

/** The transports that living workers have, and those of which a relay takes mail. */
export function findTransports(nodes: readonly NodeResource[]) {
  const relays = groupSeen(nodes)
  const names = (found: readonly GroupedRelay[]) => new Set(found.map(({ name }) => transportOf(name)))
  return { opened: names(relays), working: names(relays.filter(({ isDown }) => !isDown)) }
}

/** Since when no relay of the service has taken mail; null if one does, or if there is none. */
export function stoppedSince(nodes: readonly NodeResource[]): number | null {
  const relays = ofService(groupSeen(nodes))
  if (relays.length === 0 || relays.some(({ isDown }) => !isDown)) return null
  // The last process that could send decides.
  return Math.max(...relays.flatMap(({ failing }) => failing.map(({ since }) => Date.parse(since))))
}

/** Whether an outage that was reported may go on: since the start, nobody has tried the relay. */
export function newUnknownOutages(nodes: readonly NodeResource[]) {
  const all = groupSeen(nodes)
  const relays = ofService(all)
  const untried = all.filter(({ views }) => views.every(({ tried }) => !tried))
  return ({ kind, subject }: { readonly kind: string; readonly subject: string | null }): boolean =>
    kind === 'no_relay'
      ? ofService(untried).length === relays.length
      : kind === 'relay_down' && (all.length === 0 || untried.some(({ name }) => name === subject))
}

/**
 * The outages that are over, as the processes say and as they were kept: those that several saw at the same
 * time are one. If the store was away when a process kept an outage, only the process knows it.
 */
export function listOutages(nodes: readonly NodeResource[], kept: readonly Outage[]): readonly Outage[] {
  const said = nodes.flatMap(({ relays }) =>
    relays.flatMap(({ lastOutage, name }) =>
      lastOutage === null
        ? []
        : { ...lastOutage, relay: name, from: Date.parse(lastOutage.from), until: Date.parse(lastOutage.until) },
    ),
  )
  const merged: Outage[] = []
  for (const { from, reason, relay, until } of [...kept, ...said].toSorted((a, b) => a.from - b.from)) {
    const at = merged.findLastIndex((one) => one.relay === relay && one.until >= from)
    const known = merged[at]
    if (known === undefined) merged.push({ relay, from, until, reason })
    else merged[at] = { ...known, until: Math.max(known.until, until) }
  }
  return merged
}

/** As an access for some apps sees it: without the name of the relay, and what it said of others. */
export const withoutRelay = ({ from, reason, until }: Outage): Outage => ({
  ...{ relay: '', from, until },
  reason: isReply(reason) ? readCodes(reason) : '',
})

/** When the last outage of a relay ended; 0 if none is known. */
export const outageEnd = (outages: readonly Outage[]): number => Math.max(0, ...outages.map(({ until }) => until))

/** The first minute whose expired links are not put down to an outage that ended at `untilMs`. */
export const firstMinuteAfter = (untilMs: number): number => Math.floor(untilMs / minuteMs) + 1

/**
 * The first minute whose expired links are judged as now: the first whole one of an outage that lasts, and
 * otherwise those of the last minutes that no outage explains.
 */
export function firstMinuteNow(
  nodes: readonly NodeResource[],
  outages: readonly Outage[],
  { begin, kept }: MinuteBounds,
): number {
  const since = stoppedSince(nodes)
  return since === null
    ? Math.max(begin, firstMinuteAfter(outageEnd(outages)))
    : Math.max(kept, Math.ceil(since / minuteMs))
}

/** Minutes since 1970: where the last minutes begin, and where the kept ones do. */
type MinuteBounds = { readonly begin: number; readonly kept: number }
