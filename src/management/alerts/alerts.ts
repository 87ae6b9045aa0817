/**
 * Decides which alerts are due: pure, from the conditions of now and the state before. A condition is
 * reported once it has lasted ten seconds, for each app by itself, once more if it becomes urgent, and ends
 * when it has not been found for a minute, so that one which comes and goes is one alert. Alerts stay
 * pending until the receiver has accepted them.
 */
import { counted } from '../../domain/counts.ts'
import { describeDuration, hourMs, minuteMs } from '../../domain/duration.ts'
import { newId } from '../../domain/id.ts'
import type { KeptCheck } from '../../store/activity-store.ts'
import type { Finding, Store } from '../../store/store.ts'
import type { Attention } from '../service/condition.ts'

export type Alert = {
  readonly id: string
  readonly type: 'alert.began' | 'alert.ended'
  /** Milliseconds since 1970. */
  readonly at: number
  readonly kind: string
  readonly urgent: boolean
  readonly apps: readonly string[]
  readonly subject: string | null
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

/** `open`: by `nameOpen`, those that were found and have not ended. */
export type AlertState = { readonly open: Readonly<Record<string, Open>>; readonly pending: readonly Alert[] }

export const noAlerts: AlertState = { open: {}, pending: [] }

/** The state that all processes share, as the store has it. */
export const toAlertState = (kept: KeptCheck | null): AlertState => (kept?.result ?? noAlerts) as AlertState

type Found = Pick<Attention, 'kind' | 'message' | 'urgent'> & {
  readonly apps: readonly string[]
  readonly subject?: string | null
}

/** Shorter ones are mostly a restart, or one slow read. */
const beginAfterMs = 10_000
/** Conditions that come and go do so within seconds. */
const endAfterMs = minuteMs
/** A condition is noted as seen this often, well within `endAfterMs`: each note is a write. */
const noteEveryMs = 20_000
/** Longer than the posts of one step, which take ten seconds each at most. */
const claimMs = minuteMs
const dueMax = 5
const pendingMaxMs = 24 * hourMs
/** More would wait only while the receiver fails. The oldest are dropped. */
const pendingMax = 100

export type Name = { readonly kind: string; readonly subject: string | null; readonly app: string | null }
const nameOpen = ({ app, kind, subject }: Name): string => JSON.stringify([kind, subject, app])
const readName = (text: string): Name => {
  const [kind, subject, app] = JSON.parse(text) as [string, string | null, string | null]
  return { kind, subject, app }
}

/** One for each app that has the condition, or one for the whole service. */
const namesOf = ({ apps, kind, subject = null }: Found): string[] =>
  (apps.length === 0 ? [null] : apps).map((app) => nameOpen({ kind, subject, app }))

/**
 * The next state, or the same object if nothing changed; `due`: the alerts that the caller is to post.
 * @param isUnknown whether nobody can say now that a condition is over
 */
export function stepAlerts(
  stored: AlertState,
  found: readonly Found[],
  nowMs: number,
  isUnknown: (name: Name) => boolean = () => false,
): { readonly state: AlertState; readonly due: readonly Alert[] } {
  const state = withoutFuture(stored, nowMs)
  const noted = noteUnknown(noteFound(state, found, nowMs), isUnknown, nowMs)
  const { still, ended } = splitEnded(noted.open, nowMs)
  const alive = state.pending.filter(({ at }) => nowMs - at < pendingMaxMs)
  const pending = [...alive, ...noted.begun, ...ended].slice(-pendingMax)
  const due = pending.filter(({ claimedUntil }, n) => claimedUntil <= nowMs && !isBehind(pending, n)).slice(0, dueMax)
  const isSame = still === state.open && due.length === 0 && noted.begun.length + ended.length === 0
  if (isSame && pending.length === state.pending.length) return { state, due }
  const claimed = pending.map((alert) => (due.includes(alert) ? { ...alert, claimedUntil: nowMs + claimMs } : alert))
  return { state: { open: still, pending: claimed }, due }
}

/**
 * Whether an earlier alert about the same is pending: an end that is accepted before its beginning would
 * leave it open for good.
 */
const isBehind = (pending: readonly Alert[], n: number): boolean =>
  pending.slice(0, n).some((earlier) => {
    const { apps = [], kind, subject } = pending[n] ?? {}
    const isShared = apps.length === 0 || earlier.apps.some((app) => apps.includes(app))
    return earlier.kind === kind && earlier.subject === subject && isShared
  })

/** After the clock was set back, no time of the state is ahead for longer than it can be. */
function withoutFuture(state: AlertState, nowMs: number): AlertState {
  const isAhead = (at: number) => at > nowMs + claimMs
  const isOpenAhead = ({ from, seenAt }: Open) => isAhead(from) || isAhead(seenAt)
  const isPendingAhead = ({ at, claimedUntil }: Alert) => isAhead(at) || isAhead(claimedUntil)
  if (!Object.values(state.open).some(isOpenAhead) && !state.pending.some(isPendingAhead)) return state
  const cut = (at: number) => Math.min(at, nowMs)
  const open = Object.entries(state.open).map(([name, one]) => {
    const times = { from: cut(one.from), seenAt: cut(one.seenAt) }
    return [name, { ...one, ...times }] as const
  })
  return {
    open: Object.fromEntries(open),
    pending: state.pending.map((alert) => ({ ...alert, at: cut(alert.at), claimedUntil: cut(alert.claimedUntil) })),
  }
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
    const { apps, kind, message, subject = null, urgent } = condition
    const known = namesOf(condition).map((name) => [name, findOpen(state.open[name], nowMs)] as const)
    const isDue = ({ from, isAlerted, urgent: wasUrgent }: Open) =>
      nowMs - from >= beginAfterMs && (!isAlerted || (urgent && !wasUrgent))
    const isNew = known.some(([, one]) => one !== undefined && isDue(one))
    if (isNew) begun.push(newAlert('alert.began', { kind, subject, message, urgent, apps }, nowMs))
    for (const [name, one] of known) {
      const { from = nowMs, isAlerted = false } = one ?? {}
      const isReported = one !== undefined && isNew && isDue(one)
      if (one !== undefined && !isReported && nowMs - one.seenAt < noteEveryMs) continue
      // The end of one that was urgent says so.
      const next = { from, seenAt: nowMs, message, isAlerted: isAlerted || isReported }
      open = { ...open, [name]: { ...next, urgent: isReported || !isAlerted ? urgent : (one?.urgent ?? urgent) } }
    }
  }
  return { open, begun }
}

/** Conditions that nobody can judge now go on. */
function noteUnknown<Noted extends { readonly open: AlertState['open'] }>(
  noted: Noted,
  isUnknown: (name: Name) => boolean,
  nowMs: number,
): Noted {
  const stale = Object.entries(noted.open).filter(
    ([name, { isAlerted, seenAt }]) => isAlerted && nowMs - seenAt >= noteEveryMs && isUnknown(readName(name)),
  )
  if (stale.length === 0) return noted
  const seen = stale.map(([name, one]) => [name, { ...one, seenAt: nowMs }] as const)
  return { ...noted, open: { ...noted.open, ...Object.fromEntries(seen) } }
}

/** One that was not alerted, and that nobody has seen for long, begins anew. */
const findOpen = (one: Open | undefined, nowMs: number): Open | undefined =>
  one !== undefined && (one.isAlerted || nowMs - one.seenAt <= endAfterMs) ? one : undefined

function splitEnded(open: AlertState['open'], nowMs: number) {
  const isOver = ({ seenAt }: Open) => nowMs - seenAt > endAfterMs
  const over = Object.entries(open).filter(([, one]) => isOver(one))
  if (over.length === 0) return { still: open, ended: [] }
  const still = Object.fromEntries(Object.entries(open).filter(([, one]) => !isOver(one)))
  const alerted = over.filter(([, { isAlerted }]) => isAlerted).map(([text, one]) => ({ ...readName(text), ...one }))
  const together = Map.groupBy(alerted, ({ kind, subject }) => JSON.stringify([kind, subject]))
  const ended = [...together.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const { from, kind, message, seenAt, subject } = first
    const text = `Over after ${describeDuration(Math.max(0, seenAt - from))}: ${message}`
    const apps = group.flatMap(({ app }) => app ?? [])
    return newAlert(
      'alert.ended',
      { kind, subject, message: text, urgent: group.some(({ urgent }) => urgent), apps },
      nowMs,
    )
  })
  return { still, ended }
}

const newAlert = (
  type: Alert['type'],
  about: Pick<Alert, 'kind' | 'subject' | 'message' | 'urgent' | 'apps'>,
  nowMs: number,
): Alert => ({ id: newId('wh', nowMs), type, at: nowMs, claimedUntil: 0, ...about })

/** The name of the check below. */
export const alertsCheck = 'alerts'

/** An alert is sent again after a minute; one that waits for longer was refused twice. */
const waitsMs = 3 * minuteMs

/** Whether the receiver accepts alerts. */
export function checkAlerts({ pending }: AlertState, nowMs: number): Finding {
  const waiting = pending.filter(({ at }) => nowMs - at > waitsMs)
  const [oldest] = waiting
  const check = alertsCheck
  if (oldest === undefined) return { check, ok: true, detail: 'none waits for the receiver' }
  const since = describeDuration(nowMs - oldest.at)
  const detail = `${counted(waiting.length, 'alert has', 'alerts have')} waited up to ${since} for the receiver (POSTERN_ALERTS_URL) to accept them; the log says what it answered`
  return { check, ok: false, detail }
}

/** Null without a receiver. */
export const newAlertsCheck = (receiver: object | null, store: Pick<Store, 'findCheck' | 'now'>) =>
  receiver === null ? null : async () => checkAlerts(toAlertState(await store.findCheck('alerts')), store.now())

/** The body of an alert. `text` is the whole of it in words, which chats show. */
export function writeAlert(
  { apps, at, kind, message, subject, type, urgent }: Alert,
  consoleUrl: string | null,
): string {
  const sign = type === 'alert.began' && urgent ? 'Postern, urgent: ' : 'Postern: '
  return JSON.stringify({
    type,
    timestamp: new Date(at).toISOString(),
    text: `${sign}${escapeForChat(message)}${consoleUrl === null ? '' : ` ${consoleUrl}`}`,
    data: { kind, subject, urgent, apps, message, console: consoleUrl },
  })
}

/** Slack reads `<!channel>` and links in angle brackets; relays and people choose parts of the message. */
const escapeForChat = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
