/** The outages of the last hours: all processes add theirs to one record, which outlives them. */
import { appMinutesKept } from '../bounds.ts'
import { minuteMs } from '../duration.ts'
import type { NodeId } from '../id.ts'
import type { Outage } from './relay-state.ts'

/** As one process saw it. */
export type KeptOutage = Outage & { readonly node: NodeId }

/** Those that ended in the last `appMinutesKept`. @param kept the record, null before the first outage */
export const recentOutages = (kept: { readonly result: unknown } | null, nowMs: number): readonly KeptOutage[] =>
  ((kept?.result ?? []) as readonly KeptOutage[]).filter(({ until }) => nowMs - until < appMinutesKept * minuteMs)
