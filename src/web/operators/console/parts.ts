/** Pieces that several pages are made of. */

import type { AppStatus } from '../../../domain/app/app.ts'
import { formatCount } from '../../../domain/counts.ts'
import type { EmailState } from '../../../domain/delivery/states.ts'
import { describeDuration, describeShortTime } from '../../../domain/duration.ts'
import { shortenId } from '../../../domain/id.ts'
import { failedAloneMin, refusedMin, refusedShare } from '../../../management/service/app-conditions.ts'
import { failedShare } from '../../../management/service/condition.ts'
import { type Html, html, none } from '../../../templates/html.ts'

/** A time of an operation's answer, in UTC; the page's script adds the local time. */
export const time = (iso: string | null, absent = 'never'): Html =>
  iso === null ? html`<span class="soft">${absent}</span>` : html`<time datetime="${iso}">${utc(iso)}</time>`

/** `2026-11-23 01:48:03Z`. */
const utc = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')}Z`

/** The same for lists, without the date of today (UTC). */
export function shortTime(iso: string, now: number): Html {
  const isToday = iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10)
  return html`<time datetime="${iso}">${isToday ? `${iso.slice(11, 19)}Z` : utc(iso)}</time>`
}

/** How long ago, or how far away; the exact time is its title. */
export function age(iso: string | null, now: number, absent = 'never'): Html {
  if (iso === null) return html`<span class="soft">${absent}</span>`
  return html`<time datetime="${iso}" data-age title="${utc(iso)}">${describeAge(Date.parse(iso) - now)}</time>`
}

/** The same of an attempt: one that is due is not in the past. */
export const due = (iso: string, now: number): Html =>
  html`<time datetime="${iso}" data-age data-due title="${utc(iso)}">${Date.parse(iso) - now >= 1000 ? describeAge(Date.parse(iso) - now) : 'now'}</time>`

/** The page's script counts on with the same words. */
function describeAge(ms: number): string {
  if (Math.abs(ms) < 1000) return 'just now'
  return ms > 0 ? `in ${describeDuration(ms)}` : `${describeDuration(-ms)} ago`
}

export const took = (ms: number | null): string => (ms === null ? '–' : describeShortTime(ms))

/** A share of a whole, in per cent. */
export const share = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`

/** `quiet`: as it should be, so it has no colour. */
type Tone = 'quiet' | 'good' | 'wait' | 'bad' | 'off'

const tones: Readonly<Record<EmailState, Tone>> = {
  queued: 'wait',
  sending: 'wait',
  deferred: 'wait',
  delivered: 'quiet',
  failed: 'bad',
  expired: 'bad',
  cancelled: 'off',
  bounced: 'bad',
  complained: 'bad',
  suppressed: 'off',
}

/** How many emails were not delivered, and their share of all that ended: a large one stands out. */
export const renderLost = (lost: number, ended: number): Html => {
  if (lost === 0) return html`0`
  const text = `${formatCount(lost)} (${share(lost, ended)})`
  return lost >= failedAloneMin && lost > failedShare * ended ? html`<b class="bad">${text}</b>` : html`${text}`
}

/** How many requests were refused: a large share stands out. */
export const renderRefused = (refused: number, accepted: number): Html => {
  const text = formatCount(refused)
  return refused >= refusedMin && refused > refusedShare * (refused + accepted)
    ? html`<b class="bad">${text}</b>`
    : html`${text}`
}

/** A word as a chip. The word tells what the colour does. */
export const mark = (tone: Tone, text: string): Html => html`<span class="mark ${tone}">${text}</span>`

export const stateMark = (state: EmailState, name: string = state): Html => mark(tones[state], name)

export const statusMark = (status: AppStatus): Html => mark(status === 'active' ? 'quiet' : 'off', status)

export type Cell = Html | string | number

type TableOptions = {
  /** The columns of numbers, which are aligned right. */
  readonly numbers?: readonly number[]
  /** Shown instead of a table without rows. */
  readonly empty?: Cell
  /** For the style alone. */
  readonly name?: string
}

/** A table in a region that scrolls on a narrow screen. `caption` names it. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  { numbers = [], empty = 'Nothing here.', name = '' }: TableOptions = {},
): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  const side = (column: number): Html => (numbers.includes(column) ? html` class="number"` : none)
  const head = heads.map(
    (text, column) =>
      html`<th role="columnheader" scope="col"${side(column)}>${text || html`<span class="hidden">Actions</span>`}</th>`,
  )
  const body = rows.map((cells) => {
    const [first = '', ...rest] = cells
    const others = rest.map((cell, column) => {
      const label = heads[column + 1]
      const isNothing = ['–', '0'].includes(typeof cell === 'object' ? cell.text : String(cell))
      return html`<td role="cell"${label === '' ? html` class="last"` : side(column + 1)}${label ? html` data-head="${label}"` : none}${isNothing ? html` data-nothing` : none}>${cell}</td>`
    })
    return html`<tr role="row"><th role="rowheader" scope="row"${side(0)}>${first}</th>${others}</tr>
`
  })
  // The roles stay when the style makes cards of the rows, on a phone.
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table role="table"${heads.length > 2 ? html` class="${`cards ${name}`.trim()}"` : none}><caption class="hidden">${caption}</caption>
<thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table></div>`
}

/** A part of a page that is replaced when it changes (`live.ts`). */
export const region = (id: string, body: Html): Html => html`<div id="${id}" data-region>${body}</div>`

export const section = (title: string, body: Html, { note = '' }: { note?: Cell } = {}): Html =>
  html`<section class="card">
<div class="head">
<h2>${title}</h2>
<span class="soft">${note}</span></div>
${body}</section>`

/** Pairs of name and value. Values that are null are left out. */
export const facts = (entries: readonly (readonly [name: string, value: Cell | null])[]): Html =>
  html`<dl>${entries.flatMap(([name, value]) =>
    value === null
      ? []
      : [
          html`<dt>${name}</dt>
<dd>${value}</dd>`,
        ],
  )}</dl>`

/** A form of one button. */
export const button = (
  action: string,
  label: string,
  { fields = {}, kind = '' }: { fields?: Readonly<Record<string, string>>; kind?: 'main' | 'danger' | '' } = {},
): Html =>
  html`<form method="post" action="${action}">${hiddenFields(fields)}<button class="${kind}">${label}</button></form>`

export const hiddenFields = (fields: Readonly<Record<string, string>>): Html[] =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

/** @param about what it concerns, for those who do not see its row */
export const linkButton = (address: string, label: string, about = ''): Html =>
  html`<a class="button" href="${address}">${label}${about === '' ? none : html`<span class="hidden"> ${about}</span>`}</a>`

/** Asks before something that cannot be undone. It is a part of the page, so it needs no script. */
export const confirmation = (
  question: Cell,
  form: Html,
  cancel: string,
): Html => html`<section class="card confirm" id="confirm" aria-label="Please confirm"><p>${question}</p>
<div class="actions">${form}<a class="button" href="${cancel}">Go back</a></div></section>`

/** A part of a limit that is used up. */
export const meter = (value: number, most: number, label: string): Html => {
  const max = Math.max(most, 1)
  return html`<meter min="0" max="${max}" low="${0.8 * max}" high="${0.95 * max}" optimum="0" value="${Math.min(value, max)}" aria-label="${label}"></meter>`
}

/** A secret that was made just now and is shown once, with what else belongs to it. It takes the focus. */
export const newSecret = (title: string, text: Cell, secret: string, more: Html = none): Html =>
  html`<section class="card new-secret" role="status" aria-label="${title}" tabindex="-1" autofocus><h2>${title}</h2>
<p>${text}</p>
<div class="secret">${copied(secret)}</div>${more}</section>`

/** A button that copies, where scripts run. @param about what it copies, for those who do not see it */
export const copyButton = (text: string, label: string, about = ''): Html =>
  html`<button type="button" class="small" data-copy="${text}"${about === '' ? none : html` aria-label="${label} ${about}"`} hidden>${label}</button>`

/** A value to copy. */
export const copied = (text: string, shown = text): Html =>
  html`<span class="copy"><code title="${text}">${shown}</code>${copyButton(text, 'Copy', shown)}</span>`

/** An id, of which the whole can be copied. */
export const shortId = (id: string): Html => copied(id, shortenId(id))

/** Where the content of a page begins, after its tabs: the link "Skip to content" goes there. */
export const contentBegin = html`<div id="content" tabindex="-1"></div>`

export const tabs = (
  label: string,
  entries: readonly (readonly [name: string, address: string])[],
  current: string,
): Html =>
  html`<nav class="tabs" aria-label="${label}"><ul>${entries.map(
    ([name, address]) =>
      html`<li><a href="${address}"${name === current ? html` aria-current="page"` : none}>${name}</a></li>`,
  )}</ul></nav>`

/** The filters of a list in its address, without those that are empty. */
export const readFilters = (query: URLSearchParams, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.map((name) => [name, query.get(name)?.trim() ?? ''] as const).filter(([, value]) => value !== ''),
  )

/** The address of a list with these filters. */
export function withFilters(path: string, filters: Readonly<Record<string, string>>): string {
  const search = new URLSearchParams(filters).toString()
  return search === '' ? path : `${path}?${search}`
}

/** The next part of a list. */
export const older = (address: string | null, ended: string): Html =>
  address === null
    ? html`<p class="soft end-of-list">${ended}</p>`
    : html`<p class="end-of-list">${linkButton(address, 'Older')}</p>`

/** One page several times: in each view, with the classes that give the frame its width and its colours. */
export const renderFrames = (address: string, views: readonly (readonly [label: string, classes: string])[]): Html =>
  html`<div class="frames">${views.map(
    ([label, classes]) =>
      html`<figure><figcaption>${label}</figcaption>
<iframe class="${classes}" title="${label}" src="${address}" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe></figure>`,
  )}</div>`
