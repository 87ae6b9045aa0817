/** One email with its attempts. Nothing shows what it says, or to whom it goes. */
import { formatCount } from '../../../../domain/counts.ts'
import { causeOf } from '../../../../domain/delivery/failure-cause.ts'
import { isWaiting } from '../../../../domain/delivery/states.ts'
import { shortenId } from '../../../../domain/id.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { eventServices } from '../../../../services/services.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameEmailType } from '../../email-types.ts'
import { problem } from '../form.ts'
import { age, button, confirmation, copied, facts, region, section, time, took } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { readApps, readKeyNames } from './app-names.ts'
import { describeStopEnd, nameOutcome, type Pause, renderNext, renderState } from './email-rows.ts'
import { renderProblems } from './problems.ts'
import { renderSuppressed } from './suppressions.ts'

export const showEmail = (visit: Visit): Promise<PageAnswer> => emailPage(visit, null)

async function emailPage(visit: Visit, error: OperationError | null): Promise<PageAnswer> {
  const [email, { disabled, slugs }] = await Promise.all([
    visit.get('email.show', { params: { email: visit.params.email ?? '' } }),
    readApps(visit),
  ])
  const isHeld = disabled.has(email.app)
  const stops = isWaiting(email) && !email.test ? (await visit.get('queue.show', {})).stops : []
  const pause: Pause = { disabled, stops }
  const slug = slugs.get(email.app) ?? null
  const isLive = email.finishedAt === null
  const body = html`<p class="crumbs"><a href="/emails">Emails</a> › ${shortenId(email.id)}</p>
<div class="title">
<h1>${nameEmailType(email.type)}</h1>
${region('state', html`${renderState(email.state, visit)}`)}${renderActions(email, isHeld, visit)}
</div>
${problem(error)}${cancelConfirmation(email, visit)}
${region('explanation', html`<p class="lead">${explainWait(email, pause)}</p>${renderProblems(pause.stops, '', { isShort: true })}${renderAdvice(email, slug, visit.shell.hasInbox)}`)}
${region('suppressed', renderSuppressed(email.suppressions, { slugs, visit, back: `/emails/${email.id}` }))}
<div class="pair">${region('record', section('Record', await renderRecord(email, slug, visit)))}
${region('timeline', section('Attempts', renderTimeline(email, pause, visit)))}</div>
<p class="soft">${describeContent(email, slug, visit)}</p>`
  return {
    ...{ title: email.id, body, nav: 'emails' },
    ...(isLive && { live: `email:${email.id}` }),
    ...(error && { status: toHttpStatus(error) }),
  }
}

type Detail = Answer<'email.show'>

/** While nothing is sent, the time of the next attempt says nothing. */
export function explainWait({ app, explanation, state }: Detail, { disabled, stops }: Pause): string {
  const end = describeStopEnd(stops)
  return end === null || !isWaiting({ state }) || disabled.has(app)
    ? explanation
    : `It was accepted, and waits until ${end}.`
}

/** Where its recipient, link and names are. */
function describeContent({ finishedAt, test }: Detail, slug: string | null, { shell }: Visit): Html {
  if (test && slug !== null)
    return html`The email itself is kept for an hour, for the tests of the app: <code>postern inbox list ${slug}</code>`
  if (shell.hasInbox)
    return html`In production, the recipient, link and names are sealed and no page can show them; here, the dev inbox does.`
  return finishedAt === null
    ? html`The recipient, link and names are sealed: no page can show them, and they are deleted once the email is finished.`
    : html`The recipient, link and names were sealed, and were deleted when the email was finished.`
}

/** The next step: where to look for an email that was delivered, and what to do about one that was not. */
function renderAdvice(
  { state, reason, suppressions, test, trail }: Detail,
  slug: string | null,
  hasInbox: boolean,
): Html {
  if (test) return none
  if (state === 'delivered') return hasInbox ? none : renderReceipt(trail)
  if (isUnknownMailbox({ state, reason, trail }))
    return html`<p>Probably the address is mistyped, or nobody has it any more: then the person must give the app another one.</p>`
  if (state === 'failed' && reason === 'refused_by_relay')
    return html`<p>Its content is gone, so it cannot be sent again. If the relay refuses the sender, fix that at the relay${slug === null ? none : html` or in the <a href="/apps/${slug}/settings">settings</a>`}; then the person must ask the app for a new email.</p>`
  if (state === 'bounced')
    return html`<p>Its content is gone, so it cannot be sent again: once the cause is removed, the person must ask the app for a new one.</p>`
  if (state === 'complained')
    return html`<p>Mailbox providers count complaints against the sender. Somebody else may have entered this address, so the recipient had not asked for the email.</p>`
  if (state === 'suppressed')
    return suppressions.length === 0
      ? html`<p>Its content was not kept: the person must ask the app for a new email.</p>`
      : html`<p>Its content was not kept. If the mailbox exists, let mail be sent again below; then the person must ask the app for a new email.</p>`
  if (state === 'failed' || state === 'expired')
    return html`<p>Its content is gone, so it cannot be sent again: the person must ask the app for a new one.</p>`
  return none
}

/** Whether the relay, or a report, says that the mailbox does not exist. */
function isUnknownMailbox({ state, reason, trail }: Pick<Detail, 'state' | 'reason' | 'trail'>): boolean {
  if (state === 'bounced') return reason === 'no_mailbox'
  if (state !== 'failed' || reason !== 'refused_by_relay') return false
  const { code = null, enhanced = null, reply = '' } = trail.findLast(({ source }) => source === undefined) ?? {}
  return causeOf({ code, enhanced, text: reply }) === 'no_mailbox'
}

/** The reply of the relay names the email there. */
function renderReceipt(trail: Detail['trail']): Html {
  const reply = trail.findLast(({ outcome }) => outcome === 'delivered')?.reply ?? ''
  const receipt = reply === '' ? none : html`: its reply was <code>${reply}</code>`
  return html`<p>Not in the mailbox? Look in the spam folder, then ask the operator of the relay what happened to it${receipt}.</p>`
}

function renderActions(email: Detail, isHeld: boolean, { may, shell }: Visit): Html {
  const { id, state } = email
  const inbox =
    shell.hasInbox && state === 'delivered' && !email.test
      ? html`<a class="button" href="/inbox/${id}">Open in the inbox</a>`
      : none
  if (!may('operator')) return inbox
  const retry = state === 'deferred' && !isHeld ? button(`/emails/${id}/retry`, 'Retry now', { kind: 'main' }) : none
  const cancel = isWaiting(email)
    ? html`<a class="button" href="/emails/${id}?confirm=cancel#confirm">Cancel…</a>`
    : none
  return html`<div class="actions">${inbox}${retry}${cancel}</div>`
}

function cancelConfirmation({ id, finishedAt }: Detail, { may, query }: Visit): Html {
  if (query.get('confirm') !== 'cancel' || finishedAt !== null || !may('operator')) return none
  return confirmation(
    'Cancel this email? It will not be sent, and its content is deleted immediately. This cannot be undone.',
    button(`/emails/${id}/cancel`, 'Cancel the email', { kind: 'danger' }),
    `/emails/${id}`,
  )
}

async function renderRecord(email: Detail, slug: string | null, visit: Visit): Promise<Html> {
  const { now } = visit
  const names = await readKeyNames(visit, email.key === null ? [] : [email.key])
  return facts([
    ['Email', copied(email.id)],
    ['App', slug === null ? 'deleted' : html`<a href="/apps/${slug}">${slug}</a>`],
    [
      'Key',
      email.key === null
        ? 'none: sent to try the app'
        : html`<a href="/emails?key=${email.key}" title="${email.key}">${names.get(email.key) ?? shortenId(email.key)}</a>`,
    ],
    ['Test', email.test ? 'sent with a test key: nothing of it is real' : null],
    ['Accepted', time(email.acceptedAt)],
    ['Link expires', html`${time(email.expiresAt)} <span class="soft">(${age(email.expiresAt, now)})</span>`],
    ['Attempts', formatCount(email.attempts)],
    ['Lost leases', email.lostLeases === 0 ? null : formatCount(email.lostLeases)],
    ['Finished', email.finishedAt === null ? null : time(email.finishedAt)],
    ['Reason', email.reason?.replaceAll('_', ' ') ?? null],
  ])
}

/** By source. */
const reporters: ReadonlyMap<string, string> = new Map([
  ['mail', 'mail'],
  ['read', 'an operator'],
  ...eventServices.map(({ name, title }) => [name, title] as const),
])

type Attempt = Detail['trail'][number]

/** Attempts that were not made, one after the other for the same reason, are one entry. */
function foldUntried(trail: readonly Attempt[]) {
  const entries: { last: Attempt; times: number }[] = []
  for (const attempt of trail) {
    const entry = entries.at(-1)
    if (
      attempt.outcome === 'unattempted' &&
      entry?.last.outcome === 'unattempted' &&
      entry.last.reply === attempt.reply
    ) {
      entry.last = attempt
      entry.times++
    } else entries.push({ last: attempt, times: 1 })
  }
  return entries
}

/** The attempts and the end, with the time since acceptance; the whole time is its title. */
function renderTimeline(email: Detail, pause: Pause, { now, shell }: Visit): Html {
  const { acceptedAt, expiresAt, finishedAt, state, trail } = email
  const after = (iso: string) =>
    html`<time datetime="${iso}">+${took(Math.max(0, Date.parse(iso) - Date.parse(acceptedAt)))}</time>`
  const attempts = foldUntried(trail).map(({ last, times }) => {
    const { at, outcome, relay, reply, source, ambiguous } = last
    const name = nameOutcome(outcome, shell.hasInbox)
    return html`<li class="${outcome}">${after(at)} <b>${name}</b>${times > 1 ? html` <span class="soft">the last of ${times} times</span>` : none}${relay === undefined ? none : html` <span class="soft">by ${relay}</span>`}${source === undefined ? none : html` <span class="soft">reported by ${reporters.get(source) ?? source}</span>`}
${reply === undefined || reply === '' ? none : html`<span class="reply">${reply}</span>`}${ambiguous ? html`<span class="soft">It may have arrived: the relay did not confirm it.</span>` : none}</li>`
  })
  const wait = renderNext(email, now, pause)
  const next =
    wait === none
      ? none
      : html`<li class="next"><b>${wait}</b> <span class="soft">the link expires ${age(expiresAt, now)}</span></li>`
  const end =
    finishedAt === null || (state !== 'expired' && state !== 'cancelled')
      ? none
      : html`<li class="${state}">${after(finishedAt)} <b>${state}</b>${isDuringAttempt(email) ? html` <span class="soft">during attempt ${email.attempts}</span>` : none}</li>`
  return html`<ol class="timeline"><li>${time(acceptedAt)} <b>accepted</b></li>${attempts}${next}${end}</ol>`
}

/** An attempt that the end of the link cut short is not in the trail. */
const isDuringAttempt = ({ attempts, state, trail }: Detail): boolean =>
  state === 'expired' &&
  attempts >
    trail.filter(({ outcome, source }) => source === undefined && !['lost', 'unattempted'].includes(outcome)).length

/** Runs a change of an email; its page shows an error. */
const changing =
  (name: 'email.retry' | 'email.cancel', notice: 'email_retried' | 'email_cancelled') =>
  async (visit: Visit): Promise<PageAnswer> => {
    const email = visit.params.email ?? ''
    const changed = await visit.call(name, { params: { email } })
    if (changed.ok) return { redirect: `/emails/${email}`, notice }
    if (changed.error.code === 'not_found') throw new PageFailed(changed.error)
    return emailPage(visit, changed.error)
  }

export const retryEmail = changing('email.retry', 'email_retried')
export const cancelEmail = changing('email.cancel', 'email_cancelled')
