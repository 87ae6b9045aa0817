/** Recipients that get no mail for a while. No page shows an address. */
import { suppressionReasons } from '../../../../domain/delivery/states.ts'
import { destinations } from '../../../../domain/delivery/suppression.ts'
import { shortenId } from '../../../../domain/id.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { SuppressionResource } from '../../../../management/suppressions/suppressions.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailInput, newForm, readTexts } from '../form.ts'
import {
  age,
  button,
  confirmation,
  linkButton,
  older,
  readFilters,
  section,
  shortTime,
  table,
  time,
  withFilters,
} from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { readSlugs, type Slugs } from './app-names.ts'
import { exportForm } from './export.ts'

const reasonNames = {
  no_mailbox: 'no such mailbox',
  complaint: 'complaint',
  operator: 'by an operator',
} as const satisfies Readonly<Record<SuppressionResource['reason'], string>>

const any = ['', 'All'] as const
/** No slug of an app. */
const allApps = '*'
const lives = [
  ['1', '1 day'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['365', '1 year'],
] as const

const filterForm = newForm('filter', {
  app: { label: 'App' },
  reason: {
    label: 'Reason',
    choices: [any, ...suppressionReasons.map((name) => [name, reasonNames[name]] as const)],
  },
  destination: {
    label: 'Mail provider',
    choices: [any, ...destinations.map((name) => [name, name] as const)],
  },
})

const searchForm = newForm('search', {
  q: {
    label: 'Is this address suppressed?',
    attributes: html`required ${emailInput} placeholder="ada@example.com" autocomplete="off"`,
  },
})

const addForm = newForm('suppress', {
  to: {
    label: 'Address',
    attributes: html`required ${emailInput} autocomplete="off"`,
  },
  app: { label: 'App' },
  days: { label: 'For', choices: lives },
})

type Filters = Partial<Record<'app' | 'reason' | 'destination', string>>

const filterNames = ['app', 'reason', 'destination'] as const

const toAddress = (filters: Readonly<Record<string, string>>): string => withFilters('/suppressions', filters)

export const showSuppressions = (visit: Visit): Promise<PageAnswer> => suppressionsPage(visit, null)

async function suppressionsPage(visit: Visit, error: OperationError | null): Promise<PageAnswer> {
  const { now, query } = visit
  const filters = readFilters(query, filterNames)
  const cursor = query.get('cursor')
  const here = { ...filters, ...(cursor !== null && { cursor }) }
  const [list, slugs] = await Promise.all([visit.get('suppression.list', { query: here as object }), readSlugs(visit)])
  // Most providers are not known by name.
  const hasProvider = list.items.some(({ destination }) => destination !== 'other')
  const rows = list.items.map((item) => [
    shortTime(item.at, now),
    nameApp(item, slugs),
    reasonNames[item.reason],
    renderEnd(item, now),
    ...(hasProvider ? [item.destination] : []),
    renderCause(item),
    mayRemove(item, visit)
      ? linkButton(
          `${toAddress({ ...here, remove: item.id })}#confirm`,
          'End…',
          `(${nameApp(item, slugs)}, ${reasonNames[item.reason]})`,
        )
      : none,
  ])
  const provider = hasProvider ? ['Mail provider'] : []
  const heads = ['Last change', 'App', 'Reason', 'Ends', ...provider, 'Cause', '']
  const next = list.next === null ? null : toAddress({ ...filters, cursor: list.next })
  const empty = next === null ? 'No recipient is suppressed.' : 'None here; there are older ones.'
  const body = html`<p class="crumbs"><a href="/delivery">Delivery</a> › Suppressions</p>
<div class="title"><h1>Suppressions</h1>${renderClear(filters, list.items.length, visit)}</div>
<p class="lead">Mail to these recipients is accepted, but not sent: their mailbox does not exist, they reported an email as spam, or an operator asked for it. Each suppression ends by itself. To end the one of an address, search for the address.</p>
${clearConfirmation(filters, visit)}${removeConfirmation(list.items, toAddress(here), { slugs, visit })}
${renderSearch()}
${renderFilters(filters, slugs)}
${section('Newest first', html`${table('Suppressions', heads, rows, { empty, name: 'suppressions' })}${list.items.length === 0 && next === null ? none : html`${older(next, 'End of the list.')}${exportForm('suppressions', filters)}`}`)}
${visit.may('operator') ? renderAdd(visit, slugs, error) : none}`
  return {
    ...{ title: 'Suppressions', body, nav: 'delivery' },
    ...(error && { status: toHttpStatus(error) }),
  }
}

const nameApp = ({ app }: SuppressionResource, slugs: Slugs): string =>
  app === null ? 'all apps' : (slugs.get(app) ?? 'deleted app')

/** A complaint suppresses invitations for longer. */
const renderEnd = ({ invitationsUntil, until }: SuppressionResource, now: number): Html =>
  until === invitationsUntil
    ? age(until, now)
    : html`${Date.parse(until) > now ? age(until, now) : 'ended'}; invitations ${age(invitationsUntil, now)}`

const renderCause = ({ email, reply }: SuppressionResource): Html =>
  email === null
    ? none
    : html`<a href="/emails/${email}">${shortenId(email)}</a>${reply === null ? none : html`<br><span class="reply" title="${reply}">${reply}</span>`}`

/** Those of all apps are an admin's. */
const mayRemove = ({ app }: SuppressionResource, { may, seesAll }: Visit): boolean =>
  app === null ? may('admin') && seesAll : may('operator')

const renderRemove = (item: SuppressionResource, visit: Visit, back: string): Html =>
  mayRemove(item, visit) ? button(`/suppressions/${item.id}/remove`, 'End the suppression', { fields: { back } }) : none

/** The rows have no address, so a wrong one could not be found again. */
function removeConfirmation(
  items: readonly SuppressionResource[],
  back: string,
  { slugs, visit }: { readonly slugs: Slugs; readonly visit: Visit },
): Html {
  const item = items.find(({ id }) => id === visit.query.get('remove'))
  if (item === undefined || !mayRemove(item, visit)) return none
  const why = item.reason === 'complaint' ? ' The recipient reported an email as spam, and may do so again.' : ''
  const form = button(`/suppressions/${item.id}/remove`, 'End the suppression', { fields: { back }, kind: 'main' })
  return confirmation(
    `End this suppression of ${nameApp(item, slugs)}? New mail is then sent to this recipient.${why}`,
    form,
    back,
  )
}

/** Above the emails of a recipient: that no mail is sent to it now, and the way to change that. */
export const renderSuppressed = (
  items: readonly SuppressionResource[],
  { slugs, visit, back }: { readonly slugs: Slugs; readonly visit: Visit; readonly back: string },
): Html =>
  html`${items.map((item) => {
    const isAll = Date.parse(item.until) > visit.now
    return html`<div class="note"><p><b>${isAll ? 'Mail' : 'Invitations'} of ${nameApp(item, slugs)} to this recipient ${isAll ? 'is' : 'are'} suppressed</b> (${reasonNames[item.reason]}), until ${time(isAll ? item.until : item.invitationsUntil)}.</p>${renderRemove(item, visit, back)}</div>`
  })}`

/** The list has no addresses; the search of every page finds one. */
function renderSearch(): Html {
  const { field } = searchForm.show({})
  return html`<form method="post" action="/find" class="filters">
${field('q')}
<button>Search</button></form>`
}

function renderFilters(filters: Filters, slugs: Slugs): Html {
  const { field } = filterForm.show(filters)
  const apps = [...slugs.values()].map((slug) => [slug, slug] as const)
  return html`<form method="get" action="/suppressions" class="filters" data-auto>
${field('app', { choices: [any, ...apps] })}
${field('reason')}
${field('destination')}
<button data-auto>Show</button></form>`
}

const renderClear = (filters: Filters, count: number, { may }: Visit): Html =>
  !may('operator') || count === 0 || Object.keys(filters).length === 0
    ? none
    : linkButton(`${toAddress({ ...filters, confirm: 'clear' })}#confirm`, 'Clear all of these…')

function clearConfirmation(filters: Filters, { may, query }: Visit): Html {
  if (query.get('confirm') !== 'clear' || !may('operator') || Object.keys(filters).length === 0) return none
  const after = query.get('after')
  return confirmation(
    'Clear all suppressions that match these filters? Mail to these recipients is sent again. Do this after a mail server has called living mailboxes missing.',
    button('/suppressions/clear', 'Clear them', {
      kind: 'danger',
      fields: { ...(filters as Record<string, string>), ...(after !== null && { after }) },
    }),
    toAddress(filters),
  )
}

function renderAdd({ form, may, seesAll }: Visit, slugs: Slugs, error: OperationError | null): Html {
  const shown = addForm.show({ days: '30', ...(error && readTexts(form)) }, error)
  const apps = [...slugs.values()].map((slug) => [slug, slug] as const)
  const all = may('admin') && seesAll ? [[allApps, 'all apps'] as const] : []
  return section(
    'Suppress a recipient',
    html`${shown.problem}<form method="post" action="/suppressions" class="stack">
${shown.field('to')}
${shown.field('app', { choices: [...apps, ...all] })}
${shown.field('days')}
<div class="actions"><button class="main">Suppress</button></div></form>`,
  )
}

export async function addSuppression(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = form.get('app') ?? ''
  const [days] = lives.find(([value]) => value === form.get('days')) ?? ['30']
  const body = { to: form.get('to') ?? '', days: Number(days), ...(app !== allApps && { app }) }
  const made = await visit.call('suppression.add', { body })
  return made.ok ? { redirect: '/suppressions', notice: 'suppressed' } : suppressionsPage(visit, made.error)
}

export async function removeSuppression(visit: Visit): Promise<PageAnswer> {
  await visit.get('suppression.remove', { params: { suppression: visit.params.suppression ?? '' } })
  return { redirect: readBack(visit), notice: 'suppression_removed' }
}

/** The page that the button was on. */
function readBack({ form }: Visit): string {
  const back = form.get('back') ?? ''
  return /^\/(emails|suppressions)([/?][\w=&/-]{1,200})?$/.test(back) ? back : '/suppressions'
}

export async function clearSuppressions(visit: Visit): Promise<PageAnswer> {
  const filters = readFilters(visit.form, filterNames)
  const after = visit.form.get('after')
  const { next } = await visit.get('suppression.clear', { body: { ...filters, ...(after && { after }) } })
  return next === null
    ? { redirect: toAddress(filters), notice: 'suppressions_cleared' }
    : {
        redirect: toAddress({ ...filters, confirm: 'clear', after: next }),
        notice: 'suppressions_cleared_more',
      }
}
