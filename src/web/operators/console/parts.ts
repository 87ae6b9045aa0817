/** Pieces that several pages are made of. */

import type { EmailState } from '../../../domain/delivery/states.ts'
import { describeDuration } from '../../../domain/duration.ts'
import type { OperationError } from '../../../management/operation/result.ts'
import { type Html, html, none } from '../../../templates/html.ts'

/** A time of an operation's answer, in UTC; the page's script adds the local time. */
export const time = (iso: string | null, absent = 'never'): Html =>
  iso === null ? html`<span class="soft">${absent}</span>` : html`<time datetime="${iso}">${utc(iso)}</time>`

/** `2026-11-23 01:48:03Z`. */
const utc = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')}Z`

/** The same for lists: on a narrow screen the date of today is left out. */
export function shortTime(iso: string, now: number): Html {
  const [date, clock] = [iso.slice(0, 10), iso.slice(11, 19)]
  const isToday = date === new Date(now).toISOString().slice(0, 10)
  return html`<time datetime="${iso}"><span class="${isToday ? 'today' : ''}">${date} </span>${clock}Z</time>`
}

/** How long ago, or how far away; the exact time is its title. */
export function age(iso: string | null, now: number, absent = 'never'): Html {
  if (iso === null) return html`<span class="soft">${absent}</span>`
  const ms = Date.parse(iso) - now
  const text = ms > 0 ? `in ${describeDuration(ms)}` : `${describeDuration(-ms)} ago`
  return html`<time datetime="${iso}" data-age title="${utc(iso)}">${text}</time>`
}

/** Milliseconds: `84 ms`, `2.5 s`, `3 min`. */
export const took = (ms: number | null): string => {
  if (ms === null) return '–'
  if (ms < 1000) return `${ms} ms`
  return ms < 120_000 ? `${ms / 1000} s` : describeDuration(ms)
}

/** A share of a whole, in per cent. */
export const share = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`

type Tone = 'good' | 'wait' | 'bad' | 'off'

const tones: Readonly<Record<EmailState, readonly [Tone, string]>> = {
  queued: ['wait', '○'],
  sending: ['wait', '◐'],
  deferred: ['wait', '◐'],
  delivered: ['good', '●'],
  failed: ['bad', '✕'],
  expired: ['bad', '✕'],
  cancelled: ['off', '–'],
}

/** A word with a sign and a colour, so that no state is shown by colour alone. */
export const mark = (tone: Tone, sign: string, text: string): Html =>
  html`<span class="mark ${tone}"><span aria-hidden="true">${sign}</span> ${text}</span>`

export const stateMark = (state: EmailState): Html => mark(...tones[state], state)

export const statusMark = (status: 'active' | 'disabled'): Html =>
  status === 'active' ? mark('good', '●', 'active') : mark('off', '○', 'disabled')

export type Cell = Html | string | number

/**
 * A table in a region that scrolls on a narrow screen. `caption` names it; `numbers` are the columns aligned
 * right.
 */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  { numbers = [], empty = 'Nothing here.' }: { numbers?: readonly number[]; empty?: Cell } = {},
): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  const side = (column: number): Html => (numbers.includes(column) ? html` class="number"` : none)
  const head = heads.map((text, column) => html`<th scope="col"${side(column)}>${text}</th>`)
  const body = rows.map((cells) => {
    const [first = '', ...rest] = cells
    const others = rest.map((cell, column) => html`<td${side(column + 1)}>${cell}</td>`)
    return html`<tr><th scope="row"${side(0)}>${first}</th>${others}</tr>
`
  })
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table><caption class="hidden">${caption}</caption>
<thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`
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
  {
    fields = {},
    kind = '',
  }: { fields?: Readonly<Record<string, string>>; kind?: 'main' | 'danger' | '' } = {},
): Html =>
  html`<form method="post" action="${action}">${hiddenFields(fields)}<button class="${kind}">${label}</button></form>`

export const hiddenFields = (fields: Readonly<Record<string, string>>): Html[] =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

export const linkButton = (address: string, label: string): Html =>
  html`<a class="button" href="${address}">${label}</a>`

type FieldOptions = {
  readonly label: string
  /** The id, by which faults name the field; its name unless given. */
  readonly id?: string
  readonly value?: string
  readonly hint?: Cell
  readonly error?: OperationError | null
  readonly attributes?: Html
  readonly disabled?: boolean
}

/** The faults that an operation found in a field. */
const listFaults = (error: OperationError | null | undefined, name: string) =>
  (error?.issues ?? []).filter(({ field }) => field === name)

const describeField = (name: string, error: OperationError | null | undefined, hint: Cell | undefined) => {
  const faults = listFaults(error, name)
  const ids = [hint === undefined ? '' : `${name}-hint`, faults.length === 0 ? '' : `${name}-fault`]
  const by = ids.filter(Boolean).join(' ')
  return {
    attributes: html`${by === '' ? none : html` aria-describedby="${by}"`}${faults.length === 0 ? none : html` aria-invalid="true"`}`,
    texts: html`${hint === undefined ? none : html`<span class="hint" id="${name}-hint">${hint}</span>`}${
      faults.length === 0
        ? none
        : html`<span class="fault" id="${name}-fault">${faults.map(({ message }) => html`${message} `)}</span>`
    }`,
  }
}

/** A labelled input, with its hint and its faults. */
export function field(name: string, options: FieldOptions): Html {
  const { label, id = name, value = '', hint, error, attributes = none, disabled = false } = options
  const about = describeField(id, error, hint)
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" value="${value}"${about.attributes}${disabled ? html` disabled` : none} ${attributes}>${about.texts}</div>`
}

type Choice = readonly [value: string, label: string]

export function select(
  name: string,
  choices: readonly Choice[],
  { label, value = '', hint, error, disabled = false }: FieldOptions,
): Html {
  const about = describeField(name, error, hint)
  const options = choices.map(
    ([choice, text]) =>
      html`<option value="${choice}"${choice === value ? html` selected` : none}>${text}</option>`,
  )
  return html`<div class="field"><label for="${name}">${label}</label>
<select id="${name}" name="${name}"${about.attributes}${disabled ? html` disabled` : none}>${options}</select>
${about.texts}</div>`
}

export const checkbox = (name: string, label: string, checked: boolean): Html =>
  html`<div class="field check">
<input type="checkbox" id="${name}" name="${name}" value="yes"${checked ? html` checked` : none}><label for="${name}">${label}</label>
</div>`

/**
 * An error in the names of a form's fields. `idOf` returns the id of the field for a fault of an operation.
 */
export const inForm = (error: OperationError, idOf: (field: string) => string): OperationError => ({
  ...error,
  issues: (error.issues ?? []).map((issue) => ({ ...issue, field: idOf(issue.field) })),
})

/**
 * An error above a form: what is wrong, with a link to each field. Its faults name the fields of the form
 * (`inForm`).
 */
export function problem(error: OperationError | null): Html {
  if (error === null) return none
  const { code, message, issues = [] } = error
  const text = code === 'invalid_request' && issues.length > 0 ? 'Correct these fields:' : message
  const lines = issues.map(
    ({ field: name, message: why }) => html`<li><a href="#${name}">${name}</a>: ${why}</li>`,
  )
  return html`<div class="problem" role="alert">
<p>${text}</p>
${lines.length === 0 ? none : html`<ul>${lines}</ul>`}</div>`
}

/** Asks before something that cannot be undone. It is a part of the page, so it needs no script. */
export const confirmation = (
  question: Cell,
  form: Html,
  cancel: string,
): Html => html`<section class="card confirm" id="confirm" aria-label="Please confirm"><p>${question}</p>
<div class="actions">${form}<a class="button" href="${cancel}">Keep it as it is</a></div></section>`

/** A part of a limit that is used up. */
export const meter = (value: number, most: number, label: string): Html => {
  const max = Math.max(most, 1)
  return html`<meter min="0" max="${max}" low="${0.8 * max}" high="${0.95 * max}" optimum="0" value="${Math.min(value, max)}" aria-label="${label}"></meter>`
}

/** A secret that was made just now and is shown once, with what else belongs to it. */
export const newSecret = (title: string, text: Cell, secret: string, more: Html = none): Html =>
  html`<section class="card new-secret" role="status" aria-label="${title}"><h2>${title}</h2>
<p>${text}</p>
${copied(secret, 'it')}${more}</section>`

/** A value to copy, with a button where scripts run. */
export const copied = (text: string, label: string): Html =>
  html`<div class="copy"><code class="secret">${text}</code><button type="button" data-copy="${text}" hidden>Copy ${label}</button>
</div>`

export const tabs = (
  label: string,
  entries: readonly (readonly [name: string, address: string])[],
  current: string,
): Html =>
  html`<nav class="tabs" aria-label="${label}"><ul>${entries.map(
    ([name, address]) =>
      html`<li><a href="${address}"${name === current ? html` aria-current="page"` : none}>${name}</a></li>`,
  )}</ul></nav>`

/** The next part of a list. */
export const older = (address: string | null, ended: string): Html =>
  address === null
    ? html`<p class="soft end-of-list">${ended}</p>`
    : html`<p class="end-of-list">${linkButton(address, 'Older')}</p>`
