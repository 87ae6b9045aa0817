/**
 * Decides which alerts are due: pure, from the conditions of now and the state before. A condition is alerted
 * of, for each app by itself, once it has lasted ten seconds, and ends when it has not been found for a
 * minute, so that one which comes and goes is one alert. Alerts stay pending until the receiver has accepted
 * them.
 */
import { describeDuration, hourMs, minuteMs } from '../../domain/duration.ts'
import { newId } from '../../domain/id.ts'
import type { Attention } from '../service/condition.ts'

export const alertTypes = ['alert.began', 'alert.ended'] as const

export type Alert = {
  readonly id: string
  readonly type: (typeof alertTypes)[number]
  /** Milliseconds since 1970. */
  readonly at: number
  readonly kind: string
  readonly urgent: boolean
  readonly apps: readonly string[]
  readonly message: string
  /** A process has it to itself until then. */
  readonly claimedUntil: number
}

type Open = {
  readonly from: number
  readonly seenAt: number
  readonly urgent: boolean
  readonly message: string
  readonly isAlerted: boolean
}

/** `open`: by the kind of a condition and its app, those that were found and have not ended. */
export type AlertState = { readonly open: Readonly<Record<string, Open>>; readonly pending: readonly Alert[] }

export const noAlerts: AlertState = { open: {}, pending: [] }

type Found = Pick<Attention, 'kind' | 'message' | 'urgent'> & { readonly apps: readonly string[] }

/** Shorter ones are mostly a start, or one slow look. */
const beginAfterMs = 10_000
const endAfterMs = minuteMs
/** A condition is noted as seen this often, not at each look: each note is a write. */
const noteEveryMs = 20_000
/** A try takes ten seconds at most. */
const claimMs = minuteMs
const pendingMaxMs = 24 * hourMs
/** More would wait only while the receiver fails. */
const pendingMax = 100

/** One open condition for each app that has it, or one for the whole service. */
const namesOf = ({ apps, kind }: Found): string[] => (apps.length === 0 ? [kind] : apps.map((app) => `${kind} ${app}`))

/** The next state, or the same object if nothing changed; `due`: the alerts that the caller is to post. */
export function stepAlerts(
  state: AlertState,
  found: readonly Found[],
  nowMs: number,
): { readonly state: AlertState; readonly due: readonly Alert[] } {
  const noted = noteFound(state, found, nowMs)
  const { still, ended } = splitEnded(noted.open, nowMs)
  const alive = state.pending.filter(({ at }) => nowMs - at < pendingMaxMs)
  const pending = [...alive, ...noted.begun, ...ended].slice(-pendingMax)
  const due = pending.filter(({ claimedUntil }) => claimedUntil <= nowMs)
  if (still === state.open && due.length === 0 && pending.length === state.pending.length) return { state, due }
  const claimed = pending.map((alert) => (due.includes(alert) ? { ...alert, claimedUntil: nowMs + claimMs } : alert))
  return { state: { open: still, pending: claimed }, due }
}

/** Without alerts that the receiver accepted. */
export const withoutSent = ({ open, pending }: AlertState, sent: ReadonlySet<string>): AlertState => ({
  open,
  pending: pending.filter(({ id }) => !sent.has(id)),
})

function noteFound(state: AlertState, found: readonly Found[], nowMs: number) {
  let open = state.open
  const begun: Alert[] = []
  for (const condition of found) {
    const { kind, message, urgent } = condition
    const known = namesOf(condition).map((name) => [name, state.open[name]] as const)
    const lasts = (one: Open | undefined) => nowMs - (one?.from ?? nowMs) >= beginAfterMs
    const isNew = known.some(([, one]) => lasts(one) && !one?.isAlerted)
    if (isNew) begun.push(newAlert('alert.began', { kind, message, urgent, apps: condition.apps }, nowMs))
    for (const [name, one] of known) {
      const isAlerted = one?.isAlerted || (isNew && lasts(one))
      if (isAlerted === (one?.isAlerted ?? false) && nowMs - (one?.seenAt ?? 0) < noteEveryMs) continue
      open = { ...open, [name]: { from: one?.from ?? nowMs, seenAt: nowMs, urgent, message, isAlerted } }
    }
  }
  return { open, begun }
}

function splitEnded(open: AlertState['open'], nowMs: number) {
  const over = Object.entries(open).filter(([, { seenAt }]) => nowMs - seenAt > endAfterMs)
  if (over.length === 0) return { still: open, ended: [] }
  const still = Object.fromEntries(Object.entries(open).filter(([, { seenAt }]) => nowMs - seenAt <= endAfterMs))
  const alerted = over.filter(([, { isAlerted }]) => isAlerted)
  const ended = [...Map.groupBy(alerted, ([name]) => name.split(' ')[0] ?? '')].map(([kind, group]) => {
    const apps = group.flatMap(([name]) => name.split(' ').slice(1))
    const [, { from, message, seenAt, urgent } = { from: nowMs, message: '', seenAt: nowMs, urgent: false }] =
      group[0] ?? []
    const text = `Over after ${describeDuration(Math.max(0, seenAt - from))}: ${message}`
    return newAlert('alert.ended', { kind, message: text, urgent, apps }, nowMs)
  })
  return { still, ended }
}

const newAlert = (
  type: Alert['type'],
  about: Pick<Alert, 'kind' | 'message' | 'urgent' | 'apps'>,
  nowMs: number,
): Alert => ({
  ...{ id: newId('wh', nowMs), type, at: nowMs, claimedUntil: 0 },
  ...about,
  apps: [...about.apps],
})

/** The body of an alert. `text` is the whole of it in words, which chats show. */
export function writeAlert({ apps, at, kind, message, type, urgent }: Alert, consoleUrl: string | null): string {
  const sign = type === 'alert.ended' ? 'Postern: ' : urgent ? 'Postern, urgent: ' : 'Postern: '
  return JSON.stringify({
    type,
    timestamp: new Date(at).toISOString(),
    text: `${sign}${message}${consoleUrl === null ? '' : ` ${consoleUrl}`}`,
    data: { kind, urgent, apps, message, console: consoleUrl },
  })
}
