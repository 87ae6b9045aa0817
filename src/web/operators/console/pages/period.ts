/** The period of a list: two fields, and links to the periods that people ask for most. */
import { minuteMs } from '../../../../domain/duration.ts'
import { type Html, html } from '../../../../templates/html.ts'

export const periodFields = {
  from: { label: 'From (UTC)', faults: ['since'], attributes: html`type="datetime-local"` },
  to: { label: 'To (UTC)', faults: ['until'], attributes: html`type="datetime-local"` },
}

const minutes = [
  ['15', 'Last 15 minutes'],
  ['60', 'Last hour'],
  ['1440', 'Last 24 hours'],
  ['10080', 'Last 7 days'],
] as const

type Filters = Readonly<Record<string, string>>

/**
 * The period of the operation, and the filters without it. The pages of a list share the time at which its
 * first page was shown: `since`.
 */
export function splitPeriod({ from, to, within, ...filters }: Filters, now: number, since: string | null) {
  const [chosen] = minutes.find(([value]) => value === within) ?? []
  const begin =
    since ?? (chosen === undefined ? from && toTime(from) : new Date(now - Number(chosen) * minuteMs).toISOString())
  return { filters, period: { ...(begin && { since: begin }), ...(to && { until: toTime(to) }) } }
}

/** A field of a browser has no zone. Any other text stays as it is: the operation says what is wrong. */
const toTime = (text: string): string =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text) ? `${text.length === 16 ? `${text}:00` : text}Z` : text

/** @param address of the list with these filters */
export function periodLinks({ from, to, within, ...filters }: Filters, address: (filters: Filters) => string): Html {
  const isAny = [from, to, within].every((value) => value === undefined)
  const links = [...minutes, ['', 'Any time'] as const].map(([value, label]) =>
    (value === '' && isAny) || value === within
      ? html`<b>${label}</b> `
      : html`<a href="${address({ ...filters, ...(value !== '' && { within: value }) })}">${label}</a> `,
  )
  return html`<p class="presets">${links}</p>`
}
