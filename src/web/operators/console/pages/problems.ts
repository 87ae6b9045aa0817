/** Conditions that need attention, with a way to each cause; and, quietly, those that are over. */
import type { AppStatus } from '../../../../domain/app/app.ts'
import { counted, formatCount } from '../../../../domain/counts.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { linkButton, mark, shortTime, statusMark } from '../parts.ts'
import type { Visit } from '../visit.ts'

type Status = Answer<'status.show'>
export type Condition = Status['attention'][number]
type Place = readonly [address: string, label: string]

/** @param within minutes since acceptance, which may be days before the end */
const toEmails = (state: string, [app, ...others]: readonly string[], within = '10080'): string =>
  `/emails?${new URLSearchParams({ ...(app && others.length === 0 && { app }), state, ...(within && { within }) })}`

const delivery: Place = ['/delivery', 'Show delivery']

/** Where a condition is looked into, by the slugs of its apps. */
const places: Readonly<Record<Condition['kind'], (apps: readonly string[]) => Place>> = {
  no_worker: () => delivery,
  no_relay: () => delivery,
  relay_down: () => delivery,
  certificate_expires: () => delivery,
  process_silent: () => delivery,
  log_lost: () => delivery,
  store_failing: () => delivery,
  keys_missing: () => delivery,
  mail_late: () => delivery,
  queue_nearly_full: () => delivery,
  requests_turned_away: () => ['/#answers', 'Show the responses'],
  check_failed: () => ['/settings', 'Run the checks'],
  record_missing: ([app]) => [`/apps/${app}/domain`, 'Show the record'],
  requests_refused: ([app]) => (app ? [`/apps/${app}#refused`, 'Show the requests'] : ['/apps', 'Show the apps']),
  links_expired: (apps) => [toEmails('expired', apps), 'Show the emails'],
  mail_deferred: (apps) => [toEmails('deferred', apps, ''), 'Show the emails'],
  mail_failed: (apps) => [toEmails('failed', apps, '1440'), 'Show the emails'],
  daily_limit_near: ([app]) => [`/apps/${app}/settings#settings-daily`, 'Show the limit'],
  mail_held: ([app]) => [`/apps/${app}/settings`, 'Show the app'],
  addresses_gone: () => ['/suppressions?reason=no_mailbox', 'Show the suppressions'],
  complaints_many: (apps) => [toEmails('complained', apps), 'Show the emails'],
  bounces_many: (apps) => [toEmails('bounced', apps), 'Show the emails'],
  reports_silent: () => delivery,
  key_expires: ([app]) => [`/apps/${app}/keys`, 'Show the keys'],
  relay_untried: () => ['/delivery', 'Show delivery'],
  auth_hook_refused: ([app]) => [`/apps/${app}/connect`, 'Show the auth servers'],
  webhook_failing: ([app]) => [`/apps/${app}/webhooks`, 'Show the webhooks'],
  setting_invalid: ([app]) => [`/apps/${app}/links`, 'Show the links'],
}

/**
 * @param here the address of this page: no button leads to it
 * @param isShort the first sentence alone, for a page about something else
 */
export function renderProblems(attention: readonly Condition[], here: string, { isShort = false } = {}): Html {
  if (attention.length === 0) return none
  const items = attention.map(({ kind, message, apps, urgent }) => {
    const [address, label] = places[kind](apps)
    return html`<li class="${urgent ? 'urgent' : ''}"><span>${isShort ? readFirstSentence(message) : message}</span>${address === here ? none : linkButton(address, label)}</li>
`
  })
  return html`<section class="attention" aria-label="Needs attention"><ul>${items}</ul></section>`
}

const readFirstSentence = (text: string): string => `${text.split('. ', 1)[0]?.replace(/\.$/, '')}.`

/** The status of an app: if it is active, whether it needs attention. */
export function renderStatus(status: AppStatus, conditions: readonly Condition[]): Html {
  if (conditions.length === 0 || status !== 'active') return statusMark(status)
  return mark(conditions.some(({ urgent }) => urgent) ? 'bad' : 'wait', 'needs attention')
}

/** The worst condition in a few words, if it is urgent. */
const verdicts: Readonly<Partial<Record<Condition['kind'], string>>> = {
  store_failing: 'Requests are answered 503',
  no_worker: 'No mail is being sent',
  keys_missing: 'Mail waits for a key that is missing',
  requests_turned_away: 'Requests were refused lately',
  mail_late: 'Mail is delayed',
  links_expired: 'Links are expiring before their email is sent',
  mail_failed: 'Mail is failing',
  mail_deferred: 'The relay is deferring mail',
  daily_limit_near: 'A daily limit is used up',
  record_missing: 'A signature cannot be verified',
}

/** Is everything fine now? In one line. */
export function renderVerdict(
  { attention, lastHour, queue }: Pick<Status, 'attention' | 'lastHour' | 'queue'>,
  { isDev }: Pick<Visit, 'isDev'>,
): Html {
  const delivered = lastHour?.delivered ?? null
  const { depth } = queue
  const waiting = depth === 0 ? 'no mail waiting' : counted(depth, 'email waiting', 'emails waiting')
  const facts =
    delivered === null
      ? waiting
      : `${formatCount(delivered)} ${isDev ? 'captured' : 'delivered'} in the last hour, ${waiting}`
  const [tone, text] =
    isDev && attention.length === 0 ? (['good', 'Capturing all mail'] as const) : chooseVerdict(attention)
  return html`<div class="verdict-line ${tone}" role="status"><h1>${text}</h1><span class="soft">${facts}</span></div>`
}

const describeSince = ({ since }: Condition): string | null =>
  since === null ? null : `Nothing has been delivered since ${since.slice(11, 19)}Z`

function chooseVerdict(attention: readonly Condition[]): readonly ['good' | 'wait' | 'bad', string] {
  const [worst, ...others] = attention
  if (worst === undefined) return ['good', 'Sending normally']
  if (worst.urgent) {
    const more = `${counted(others.length, 'other thing needs', 'other things need')} attention`
    const text = verdicts[worst.kind] ?? describeSince(worst) ?? 'Something is wrong'
    return ['bad', others.length === 0 ? text : `${text}, and ${more}`]
  }
  // After an outage, what waited is being sent.
  if (worst.kind === 'relay_untried') return ['wait', 'Nothing sent yet since the start']
  if (worst.kind === 'mail_late' && others.length === 0) return ['wait', 'Sending again']
  return ['wait', `Sending, but ${counted(attention.length, 'thing needs', 'things need')} attention`]
}

/** @param here the address of this page: no link leads to it */
export function renderEarlier(earlier: Status['earlier'], { now }: Visit, here: string): Html {
  if (earlier.length === 0) return none
  const items = earlier.map(({ apps, from, kind, message, until }) => {
    const [address, label] = places[kind](apps)
    const link = address === here ? none : html` <a href="${address}">${label}</a>`
    return html`<li>${shortTime(from, now)} – ${shortTime(until, now)} <span>${message}</span>${link}</li>`
  })
  const [newest] = earlier
  const others = earlier.length === 1 ? '' : `, and ${formatCount(earlier.length - 1)} more`
  const times = newest === undefined ? none : html`${shortTime(newest.from, now)} – ${shortTime(newest.until, now)}`
  return html`<details class="earlier"><summary>Earlier problems: ${times}${others}</summary><ul>${items}</ul></details>`
}

/** How many emails of an app wait. */
export function countWaiting({ apps }: Status['queue'], slug: string): number {
  const { queued = 0, sending = 0, deferred = 0 } = apps.find((app) => app.slug === slug) ?? {}
  return queued + sending + deferred
}
