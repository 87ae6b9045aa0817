/** The list of emails with its filters. */

import { keepDays, replySearchMax } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { emailStates, isWaiting } from '../../../../domain/delivery/states.ts'
import { shortenId } from '../../../../domain/id.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { EmailResource } from '../../../../management/resources.ts'
import { adviseOn } from '../../../../services/advice.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames } from '../../email-types.ts'
import { newForm } from '../form.ts'
import {
  age,
  button,
  confirmation,
  hiddenFields,
  linkButton,
  older,
  readFilters,
  region,
  section,
  withFilters,
} from '../parts.ts'
import { nameRefusal } from '../refusal-titles.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { readApps, readKeyNames, type Slugs } from './app-names.ts'
import { explainWait } from './email.ts'
import { nameOutcome, type Pause, renderEmails, renderState } from './email-rows.ts'
import { exportForm } from './export.ts'
import { periodFields, periodLinks, splitPeriod } from './period.ts'
import { renderProblems } from './problems.ts'
import { refusalsList } from './refusals.ts'
import { renderSuppressed } from './suppressions.ts'

type Filters = Readonly<Record<string, string>>

const any = ['', 'All'] as const
const filterForm = newForm('filter', {
  app: { label: 'App' },
  type: { label: 'Type', choices: [any, ...emailTypeNames] },
  state: {
    label: 'State',
    choices: [any, ...emailStates.map((state) => [state, nameOutcome(state, false)] as const)],
  },
  test: {
    label: 'Mail',
    choices: [
      ['', 'Real'],
      ['true', 'Tests'],
    ],
  },
  ...periodFields,
})

const filterNames = ['app', 'key', 'type', 'state', 'test', 'recipient', 'reply', 'within', 'from', 'to'] as const

export const toAddress = (filters: Filters): string => withFilters('/emails', filters)

export async function listEmails(visit: Visit): Promise<PageAnswer> {
  const { now, query } = visit
  const whole = readFilters(visit.query, filterNames)
  const cursor = query.get('cursor')
  const { filters, period } = splitPeriod(whole, now, query.get('since'))
  const wanted = { ...filters, ...period }
  const [list, { disabled, slugs }, queue] = await Promise.all([
    visit.get('email.list', { query: { ...wanted, ...(cursor !== null && { cursor }) } }),
    readApps(visit),
    visit.get('queue.show', {}),
  ])
  const pause: Pause = { disabled, stops: list.items.some(isWaiting) ? queue.stops : [] }
  const next =
    list.next === null ? null : toAddress({ ...whole, ...(period.since && { since: period.since }), cursor: list.next })
  const { recipient } = filters
  const refused =
    recipient === undefined || cursor !== null
      ? []
      : (await visit.get('refusal.list', { query: { recipient, limit: refusalsShown } })).items
  const isUnknown = filters.recipient !== undefined && list.items.length === 0 && next === null
  const suppressed = recipient === undefined ? [] : await readSuppressed(visit, recipient)
  const rows = isUnknown
    ? renderUnknown(visit, refused, suppressed.length > 0)
    : renderEmails(list.items, visit, {
        ...{ withApp: true, slugs, pause },
        ...(Object.keys(whole).length > 0 && { empty: 'No email matches.' }),
      })
  const end = `End of the list. Records are kept for ${keepDays} days; an email's content is deleted once it is finished.`
  const [newest] = list.items
  const body = html`<div class="title"><h1>Emails</h1>${filters.recipient === undefined ? renderRetryAll(queue, whole, visit) : none}</div>
${retryAllConfirmation(visit, whole)}
${region('stop', renderProblems(pause.stops, '', { isShort: true }))}
${await renderNotes(whole, visit)}
${filters.recipient === undefined ? none : region('suppressed', renderSuppressed(suppressed, { slugs, visit, back: toAddress({ recipient: filters.recipient }) }))}
${filters.recipient !== undefined && newest !== undefined && cursor === null ? region('newest', await renderNewest(newest, refused[0], { pause, visit })) : none}
${filters.recipient === undefined || cursor !== null ? none : region('refused', await renderRefused(visit, filters.recipient, { refused, slugs }))}
${filters.recipient === undefined ? renderFilters(whole, slugs) : none}
${renderReplies(list.items, whole)}
${section(cursor === null ? 'Newest first' : 'Newest first, continued', html`${cursor === null ? region('list', rows) : rows}${list.items.length === 0 && next === null ? none : html`${older(next, end)}${exportForm('emails', wanted)}`}`)}`
  return { title: 'Emails', body, nav: 'emails', ...(cursor === null && { live: 'service' }) }
}

const readSuppressed = async ({ get }: Visit, recipient: string) =>
  (await get('suppression.list', { query: { recipient } })).items

/** The newest email to an address, explained: mostly, the search was for that one. */
async function renderNewest(
  { id, state, acceptedAt }: EmailResource,
  refused: Refused[number] | undefined,
  { pause, visit }: { readonly pause: Pause; readonly visit: Visit },
): Promise<Html> {
  const explanation = explainWait(await visit.get('email.show', { params: { email: id } }), pause)
  const isNewer = refused !== undefined && refused.at > acceptedAt
  return html`${isNewer ? html`<p class="lead">${renderNewestRefusal(refused, visit)}</p>` : none}<p class="lead">The newest email to this address was accepted ${age(acceptedAt, visit.now)}: ${renderState(state, visit)}</p>
<p>${explanation} ${linkButton(`/emails/${id}`, 'Open the email')}</p>`
}

/** The refused requests for an address, which may be why its email is missing. */
async function renderRefused(
  visit: Visit,
  recipient: string,
  { refused, slugs }: { readonly refused: Refused; readonly slugs: Slugs },
): Promise<Html> {
  if (refused.length === 0) return none
  const names = await readKeyNames(
    visit,
    refused.map(({ key }) => key),
  )
  const note = html`<a href="/refusals?recipient=${recipient}">All of them</a>`
  return section('Refused requests for this address', refusalsList(refused, { visit, slugs, names }), { note })
}

const refusalsShown = 10
type Refused = Answer<'refusal.list'>['items']

const renderNewestRefusal = ({ at, code, requestId }: Refused[number], { now }: Visit): Html =>
  html`The newest request for it was refused ${age(at, now)}: ${nameRefusal(code)}. <a href="/refusals/${requestId}">Show why</a>`

/** An address to which no email was accepted. */
function renderUnknown(visit: Visit, [newest]: Refused, isSuppressed: boolean): Html {
  const { seesAll } = visit
  const nothing = html`No email to this address was accepted${seesAll ? '' : ' by the apps that you can see'} in the last ${keepDays} days`
  if (newest !== undefined) return html`<p class="lead">${nothing}. ${renderNewestRefusal(newest, visit)}</p>`
  if (isSuppressed)
    return html`<p class="lead">${nothing}. It would not be sent: the address is suppressed, as shown above.</p>`
  return html`<p class="lead">${nothing}.</p>
<p>Check the spelling. If the address is right and no refused request is kept for it, the request probably did not reach Postern, or its key was unknown: search the log for invalid_key.</p>`
}

function renderFilters(filters: Filters, slugs: Slugs): Html {
  const { field } = filterForm.show(filters)
  const apps = [...slugs.values()].map((slug) => [slug, slug] as const)
  const { key, reply } = filters
  const kept = hiddenFields({ ...(key && { key }), ...(reply && { reply }) })
  return html`<form method="get" action="/emails" class="filters" data-auto>
${field('app', { choices: [any, ...apps] })}
${field('type')}
${field('state')}
${field('test')}
${field('from')}
${field('to')}
${kept}<button data-auto>Show</button></form>
${periodLinks(filters, toAddress)}`
}

/** The recipient or key of the list, with a way to leave it out. */
async function renderNotes({ recipient, key, reply, ...others }: Filters, visit: Visit): Promise<Html> {
  const names = await readKeyNames(visit, key === undefined ? [] : [key])
  const chips = [
    recipient === undefined
      ? none
      : html`<p class="chip"><span data-searched="${recipient}">One address</span> <a href="${toAddress({ ...others, ...(key && { key }) })}">Show all</a></p>`,
    key === undefined
      ? none
      : html`<p class="chip">Sent with the key <b title="${key}">${names.get(key) ?? shortenId(key)}</b> <a href="${toAddress({ ...others, ...(recipient && { recipient }) })}">Show all</a></p>`,
    reply === undefined
      ? none
      : html`<p class="chip">With a reply that contains <b>${reply}</b> <a href="${toAddress({ ...others, ...(key && { key }) })}">Show all</a></p>`,
  ]
  return html`${chips}`
}

function renderRetryAll(
  { apps, states }: Answer<'queue.show'>,
  { app, state = 'deferred' }: Filters,
  { may }: Visit,
): Html {
  if (!may('operator') || state !== 'deferred') return none
  const count = app === undefined ? states.deferred : (apps.find(({ slug }) => slug === app)?.deferred ?? 0)
  return count === 0
    ? none
    : linkButton(
        `${toAddress({ ...(app && { app }), confirm: 'retry' })}#confirm`,
        `Retry ${formatCount(count)} deferred…`,
      )
}

const repliesMax = 3

/** The replies that several emails of a list have in common, with advice where there is some. */
function renderReplies(emails: readonly EmailResource[], { app }: Filters): Html {
  const refused = emails.filter(
    ({ attempts, state }) => attempts > 0 && state !== 'delivered' && state !== 'complained',
  )
  const groups = [...Map.groupBy(refused, ({ lastReply }) => lastReply ?? '')]
    .filter(([reply, group]) => reply !== '' && group.length > 1)
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, repliesMax)
  if (groups.length === 0) return none
  const items = groups.map(([reply, group]) => {
    const advice = adviseOn(reply)
    return html`<li><b>${formatCount(group.length)}</b> × <a href="${toAddress({ ...(app && { app }), reply: reply.slice(0, replySearchMax) })}"><code>${reply}</code></a>${advice === null ? none : html` <span class="soft">${advice}</span>`}</li>`
  })
  return html`<section class="card" aria-label="Replies in common"><p class="soft">Several emails on this page got the same reply:</p>
<ul class="replies">${items}</ul></section>`
}

function retryAllConfirmation({ may, query, seesAll }: Visit, { app }: Filters): Html {
  if (query.get('confirm') !== 'retry' || !may('operator')) return none
  const whose = app !== undefined ? `from ${app}` : seesAll ? 'from all apps' : 'from all your apps'
  return confirmation(
    `Retry every deferred email ${whose} now? Do this once the relay is back. Emails suspected of crashing a worker are skipped, and failed emails cannot be retried.`,
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
