/**
 * The list of emails with its filters, the search, and one email with its attempts. Nothing shows what an
 * email says, or to whom it goes.
 */

import { parseDeliveryKey } from '../../../../domain/app/delivery-key.ts'
import { keepDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { emailStates } from '../../../../domain/delivery/states.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { EmailResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames, nameEmailType } from '../../email-type-names.ts'
import {
  age,
  button,
  confirmation,
  facts,
  older,
  problem,
  region,
  section,
  select,
  shortTime,
  stateMark,
  table,
  time,
} from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { readSlugs, type Slugs } from './app-names.ts'

type Filters = Readonly<Record<string, string>>

const filterNames = ['app', 'key', 'type', 'state', 'recipient'] as const

/** The filters of the address, without those that are empty. */
function readFilters({ query }: Visit): Filters {
  const given = filterNames.map((name) => [name, query.get(name) ?? ''] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

const toAddress = (filters: Filters): string => {
  const search = new URLSearchParams(filters).toString()
  return search === '' ? '/emails' : `/emails?${search}`
}

export async function listEmails(visit: Visit): Promise<PageAnswer> {
  const filters = readFilters(visit)
  const cursor = visit.query.get('cursor')
  const query = { ...filters, ...(cursor !== null && { cursor }) }
  const list = await visit.get('email.list', { query })
  const slugs = await readSlugs(visit)
  const next = list.next === null ? null : toAddress({ ...filters, cursor: list.next })
  const isUnknown = filters.recipient !== undefined && list.items.length === 0 && next === null
  const rows = isUnknown ? notAccepted(slugs) : renderEmails(list.items, visit, { withApp: true, slugs })
  const body = html`<div class="title"><h1>Emails</h1>${retryAllButton(visit, filters)}</div>
${retryAllConfirmation(visit, filters)}
${filterForm(filters, slugs)}
${recipientNote(filters)}
${section('Newest first', html`${cursor === null ? region('list', rows) : rows}${older(next, `This is the end. Records are kept for ${keepDays} days; the content is deleted when an email has ended.`)}`)}`
  return { title: 'Emails', body, nav: 'emails', ...(cursor === null && { live: 'service' }) }
}

/** Somebody who gets no mail has often none that was accepted. */
const notAccepted = (slugs: Slugs): Html =>
  html`<p>No email to this address was accepted in the last ${keepDays} days. Compare the address with what was searched for. If an app sent one, the
request was refused, and its page says why: ${[...slugs.values()].map((slug) => html`<a href="/apps/${slug}">${slug}</a> `)}</p>`

function filterForm(filters: Filters, slugs: Slugs): Html {
  const any = ['', 'all'] as const
  const apps = [...slugs.values()].map((slug) => [slug, slug] as const)
  const kept = ['key', 'recipient'].flatMap((name) =>
    filters[name] === undefined ? [] : [html`<input type="hidden" name="${name}" value="${filters[name]}">`],
  )
  return html`<form method="get" action="/emails" class="filters" data-auto>
${select('app', [any, ...apps], { label: 'App', value: filters.app ?? '' })}
${select('type', [any, ...emailTypeNames], { label: 'Type', value: filters.type ?? '' })}
${select('state', [any, ...emailStates.map((state) => [state, state] as const)], {
  label: 'State',
  value: filters.state ?? '',
})}
${kept}<button>Show</button></form>`
}

/** The recipient or key of the list, with a way to leave it out. */
function recipientNote({ recipient, key, ...others }: Filters): Html {
  const notes: Html[] = []
  if (recipient !== undefined)
    notes.push(
      html`<p class="chip">One recipient (by a hash of the address) <a href="${toAddress({ ...others, ...(key && { key }) })}">Show all</a></p>`,
    )
  if (key !== undefined)
    notes.push(
      html`<p class="chip">Sent with the key <code>${key}</code> <a href="${toAddress({ ...others, ...(recipient && { recipient }) })}">Show all</a></p>`,
    )
  return html`${notes}`
}

const retryAllButton = ({ may }: Visit, { app }: Filters): Html =>
  may('operator')
    ? html`<a class="button" href="${toAddress({ ...(app && { app }), confirm: 'retry' })}#confirm">Retry all deferred…</a>`
    : none

function retryAllConfirmation({ may, query, seesAll }: Visit, { app }: Filters): Html {
  if (query.get('confirm') !== 'retry' || !may('operator')) return none
  const whose = app !== undefined ? `of ${app}` : seesAll ? 'of all apps' : 'of all your apps'
  return confirmation(
    `Make every deferred email ${whose} due now? It helps when the relay works again. Emails that may have killed their workers stay as they are.`,
    button('/emails/retry', 'Retry all now', { kind: 'main', fields: app === undefined ? {} : { app } }),
    toAddress(app === undefined ? {} : { app }),
  )
}

export async function retryAll(visit: Visit): Promise<PageAnswer> {
  const app = visit.form.get('app')
  const body = app === null ? {} : { app }
  const { complete } = await visit.get('email.retry_all', { body })
  const filters = { ...body, state: 'deferred' }
  return { redirect: toAddress(filters), notice: complete ? 'all_retried' : 'all_retried_more' }
}

/** In a few words: when the next attempt is, or what the relay said. */
function renderNote({ lastReply, nextAttemptAt, reason, state }: EmailResource, now: number): Html {
  const next = nextAttemptAt === null ? none : html`next ${age(nextAttemptAt, now)} `
  if (lastReply !== null) return html`${next}<span class="reply">${lastReply}</span>`
  if (reason !== null) return html`${reason.replaceAll('_', ' ')}`
  return state === 'expired' ? html`no attempt was possible` : next
}

export function renderEmails(
  emails: readonly EmailResource[],
  { now }: Visit,
  { withApp, slugs }: { readonly withApp: boolean; readonly slugs?: Slugs },
): Html {
  const rows = emails.map((email) => [
    html`<a href="/emails/${email.id}">${shortTime(email.acceptedAt, now)}</a>`,
    stateMark(email.state),
    renderNote(email, now),
    ...(withApp ? [slugs?.get(email.app) ?? 'deleted app'] : []),
    nameEmailType(email.type),
    formatCount(email.attempts),
  ])
  const heads = ['accepted', 'state', 'what happened', ...(withApp ? ['app'] : []), 'type', 'attempts']
  return table('Emails', heads, rows, { numbers: [heads.length - 1], empty: 'No such emails.' })
}

/** No address, id, key or slug is longer. */
const searchMax = 254

/** The search of every page. An address is sent in the body alone, and the answer leads to its hash. */
export async function find(visit: Visit): Promise<PageAnswer> {
  const text = (visit.form.get('q') ?? '').trim()
  if (text.length > searchMax) return notFoundPage(`Search for at most ${searchMax} characters.`)
  if (text.includes('@')) return findRecipient(visit, text)
  if (text.startsWith('em_')) return { redirect: `/emails/${encodeURIComponent(text)}` }
  if (text.startsWith('req_')) return { redirect: `/refusals/${encodeURIComponent(text)}` }
  if (parseDeliveryKey(text) !== null) return findPastedKey(visit, text)
  if (text.startsWith('key_')) return { redirect: `/emails?key=${encodeURIComponent(text)}` }
  const app = await visit.call('app.show', { params: { app: text } })
  if (app.ok && text !== '') return { redirect: `/apps/${app.value.slug}` }
  return notFoundPage(
    'Nothing is found by these words. Search for a whole address, an email (em_…), a request (req_…), a delivery key (key_…, or the key itself), or the slug of an app.',
  )
}

/** A key that leaked: its emails, and the page about it. */
async function findPastedKey({ call }: Visit, key: string): Promise<PageAnswer> {
  const found = await call('key.find', { body: { key } })
  return found.ok ? { redirect: `/emails?key=${found.value.id}` } : notFoundPage(found.error.message)
}

async function findRecipient(visit: Visit, to: string): Promise<PageAnswer> {
  const found = await visit.call('email.find', { body: { to, limit: 1 } })
  if (found.ok) return { redirect: toAddress({ recipient: found.value.recipient }) }
  if (found.error.code !== 'invalid_request') throw new PageFailed(found.error)
  return notFoundPage(
    'This is no whole email address. Emails are found by the whole address alone, because only its hash is kept.',
  )
}

const notFoundPage = (message: string): PageAnswer => ({
  title: 'Nothing found',
  nav: 'emails',
  status: 404,
  body: html`<h1>Nothing found</h1><p class="lead">${message}</p>`,
})

export const showEmail = (visit: Visit): Promise<PageAnswer> => emailPage(visit, null)

async function emailPage(visit: Visit, error: OperationError | null): Promise<PageAnswer> {
  const email = await visit.get('email.show', { params: { email: visit.params.email ?? '' } })
  const slug = (await readSlugs(visit)).get(email.app) ?? null
  const isLive = email.finishedAt === null
  const body = html`<p class="crumbs"><a href="/emails">Emails</a> › ${email.id}</p>
<div class="title">
<h1>${nameEmailType(email.type)}</h1>
${region('state', html`${stateMark(email.state)}`)}${renderActions(email, visit)}
</div>
${problem(error)}${cancelConfirmation(email, visit)}
${region('explanation', html`<p class="lead">${email.explanation}</p>`)}
<div class="pair">${region('record', section('Record', renderRecord(email, slug, visit)))}
${region('timeline', section('Attempts', renderTimeline(email, visit)))}</div>
<p class="soft">Recipient, link and names are sealed: no page can show them, and they are deleted when the email has ended.</p>`
  return {
    ...{ title: email.id, body, nav: 'emails' },
    ...(isLive && { live: `email:${email.id}` }),
    ...(error && { status: toHttpStatus(error) }),
  }
}

type Detail = Answer<'email.show'>

function renderActions({ id, state }: Detail, { may, shell }: Visit): Html {
  const inbox =
    shell.hasInbox && state === 'delivered'
      ? html`<a class="button" href="/inbox/${id}">Open in the inbox</a>`
      : none
  if (!may('operator')) return inbox
  const retry = state === 'deferred' ? button(`/emails/${id}/retry`, 'Retry now', { kind: 'main' }) : none
  const cancel =
    state === 'deferred' || state === 'queued'
      ? html`<a class="button" href="/emails/${id}?confirm=cancel#confirm">Cancel…</a>`
      : none
  return html`<div class="actions">${inbox}${retry}${cancel}</div>`
}

function cancelConfirmation({ id, finishedAt }: Detail, { may, query }: Visit): Html {
  if (query.get('confirm') !== 'cancel' || finishedAt !== null || !may('operator')) return none
  return confirmation(
    'Cancel this email? It is not sent, and its content is deleted at once. This cannot be undone.',
    button(`/emails/${id}/cancel`, 'Cancel the email', { kind: 'danger' }),
    `/emails/${id}`,
  )
}

const renderRecord = (email: Detail, slug: string | null, { now }: Visit): Html =>
  facts([
    ['Email', html`<code>${email.id}</code>`],
    ['App', slug === null ? 'deleted' : html`<a href="/apps/${slug}">${slug}</a>`],
    [
      'Key',
      email.key === null ? 'none: a test email' : html`<a href="/emails?key=${email.key}">${email.key}</a>`,
    ],
    ['Accepted', time(email.acceptedAt)],
    ['Link expires', html`${time(email.expiresAt)} <span class="soft">(${age(email.expiresAt, now)})</span>`],
    ['Attempts', formatCount(email.attempts)],
    ['Lost leases', email.lostLeases === 0 ? null : formatCount(email.lostLeases)],
    ['Ended', email.finishedAt === null ? null : time(email.finishedAt)],
    ['Reason', email.reason?.replaceAll('_', ' ') ?? null],
  ])

function renderTimeline(
  { acceptedAt, expiresAt, finishedAt, nextAttemptAt, state, trail }: Detail,
  { now }: Visit,
): Html {
  const attempts = trail.map(
    ({ at, outcome, relay, reply, ambiguous }) => html`<li class="${outcome}">${time(at)}
<b>${outcome === 'lost' ? 'lease lost' : outcome}</b>${relay === undefined ? none : html` <span class="soft">by ${relay}</span>`}
${reply === undefined ? none : html`<span class="reply">${reply}</span>`}${ambiguous ? html`<span class="soft">It may have arrived: the answer is missing.</span>` : none}</li>`,
  )
  const next =
    nextAttemptAt === null
      ? none
      : html`<li class="next">${time(nextAttemptAt)} <b>next attempt</b> <span class="soft">${age(nextAttemptAt, now)}; the link expires ${age(expiresAt, now)}</span></li>`
  const end =
    finishedAt === null || state === 'delivered' || state === 'failed'
      ? none
      : html`<li class="${state}">${time(finishedAt)} <b>${state}</b></li>`
  return html`<ol class="timeline"><li>${time(acceptedAt)} <b>accepted</b></li>${attempts}${next}${end}</ol>`
}

/** Runs a change of an email; a refusal stands on its page. */
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
