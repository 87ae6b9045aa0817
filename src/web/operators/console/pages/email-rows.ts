/** Rows of emails, for the list and for the page of an app: state, result, and when the next attempt is. */
import { formatCount } from '../../../../domain/counts.ts'
import { isWaiting } from '../../../../domain/delivery/states.ts'
import type { EmailResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameEmailType } from '../../email-types.ts'
import { due, shortTime, stateMark, table, took } from '../parts.ts'
import type { Visit } from '../visit.ts'
import type { Slugs } from './app-names.ts'
import type { Condition } from './problems.ts'

const outcomeNames: Readonly<Record<string, string>> = {
  unattempted: 'not tried',
  lost: 'lease lost',
  complained: 'complaint',
}

/** An attempt that was not made is "not tried"; what the dev inbox has is captured. */
export function nameOutcome(outcome: string, hasInbox: boolean): string {
  if (outcome === 'delivered' && hasInbox) return 'captured'
  return outcomeNames[outcome] ?? outcome.replaceAll('_', ' ')
}

/** Why mail waits that is due: apps that are disabled, by id, and conditions in which nothing is sent. */
export type Pause = { readonly disabled: ReadonlySet<string>; readonly stops: readonly Condition[] }

/** The event that ends a stop; null if there is none. */
export function describeStopEnd([stop]: Pause['stops']): string | null {
  if (stop === undefined) return null
  return stop.kind === 'no_relay' ? 'a relay accepts mail' : 'a process sends mail'
}

/** When the next attempt is, or on what the email waits; nothing where neither is known. */
export function renderNext(
  { app, nextAttemptAt, state }: Pick<EmailResource, 'app' | 'nextAttemptAt' | 'state'>,
  now: number,
  { disabled, stops }: Pause,
): Html {
  if (!isWaiting({ state })) return none
  if (disabled.has(app)) return html`held: the app is disabled or suspended`
  const end = describeStopEnd(stops)
  if (end !== null) return html`waits until ${end}`
  return nextAttemptAt === null ? none : html`next attempt ${due(nextAttemptAt, now)}`
}

/** In a few words: how long it took, when the next attempt is, or what the relay said. */
function renderNote(email: EmailResource, now: number, pause: Pause): Html {
  const { acceptedAt, finishedAt, lastReply, reason, state } = email
  const next = renderNext(email, now, pause)
  if (state === 'delivered' && finishedAt !== null)
    return html`after ${took(Date.parse(finishedAt) - Date.parse(acceptedAt))}`
  if (state === 'complained') return html`reported as spam`
  if (state !== 'cancelled' && lastReply !== null && lastReply !== '')
    return html`${next} <span class="reply" title="${lastReply}">${lastReply}</span>`
  if (reason !== null) return html`${reason.replaceAll('_', ' ')}`
  return state === 'expired' ? html`no attempt was possible` : next
}

type RowOptions = {
  readonly withApp: boolean
  readonly slugs?: Slugs
  readonly pause: Pause
  /** Shown in place of a list without rows. */
  readonly empty?: string
}

export function renderEmails(
  emails: readonly EmailResource[],
  visit: Visit,
  { withApp, slugs, pause, empty = 'No email yet.' }: RowOptions,
): Html {
  const { now } = visit
  const rows = emails.map((email) => [
    html`<a href="/emails/${email.id}">${shortTime(email.acceptedAt, now)}</a>`,
    renderState(email.state, visit),
    renderNote(email, now, pause),
    ...(withApp ? [slugs?.get(email.app) ?? 'deleted app'] : []),
    nameEmailType(email.type),
    formatCount(email.attempts),
  ])
  const heads = ['Accepted', 'State', 'Result', ...(withApp ? ['App'] : []), 'Type', 'Attempts']
  return table('Emails', heads, rows, {
    name: 'emails',
    numbers: [heads.length - 1],
    empty,
  })
}

/** In dev mode nothing is delivered. */
export const renderState = (state: EmailResource['state'], { shell }: Visit): Html =>
  stateMark(state, nameOutcome(state, shell.hasInbox))
