/**
 * Charts as SVG, made here: they need no script, follow light and dark, and each stands beside a table of its
 * numbers. The drawing is stretched to its place, and its labels are text of the page, so they are as large
 * on a phone as on a desk.
 */
import { type Html, html, none } from '../../../templates/html.ts'
import { table } from './parts.ts'

/** One series of a chart. Its class names the colour (`console.css`). */
export type Series = {
  readonly name: string
  readonly className: string
  readonly values: readonly number[]
}

type Chart = {
  readonly title: string
  /** One label for each column. */
  readonly columns: readonly string[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** The values that the top line may have, rising; round numbers unless given. */
  readonly tops?: readonly number[]
  /** Later series are drawn over earlier ones, not on top of them: each contains the next. */
  readonly layered?: boolean
  /** Shaded columns, behind the series. */
  readonly shaded?: { readonly name: string; readonly columns: readonly number[] }
}

/** Units of the drawing. */
const height = 100
const columnWidth = 10
const gap = 1.5
const labelsMax = 4

const ceilings = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10]

/** A round number at or above the value, with a round half: the columns fill most of the plot. */
function ceiling(value: number): number {
  if (value <= 1) return 1
  if (value <= 10) return 2 * Math.ceil(value / 2)
  const power = 10 ** Math.floor(Math.log10(value))
  return ceilings.map((step) => step * power).find((step) => step >= value) ?? value
}

/** Columns, each with its series one above the other. */
export function columnChart(chart: Chart): Html {
  const { columns, format, layered = false, series, shaded = { name: '', columns: [] }, title } = chart
  const totals = columns.map((_, at) => {
    const values = series.map((each) => each.values[at] ?? 0)
    return layered ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0)
  })
  const most = Math.max(0, ...totals)
  const top = chart.tops?.find((value) => value >= most) ?? ceiling(most)
  const width = columns.length * columnWidth
  const bars = columns.map((label, at) => renderStack(chart, { at, label, top }))
  const lines = [0.5, 50, 99.5].map(
    (y) => html`<line class="grid" x1="0" x2="${width}" y1="${y}" y2="${y}" vector-effect="non-scaling-stroke"/>`,
  )
  const every = Math.ceil(columns.length / labelsMax)
  const names = columns.filter((_, at) => at % every === 0).map((label) => html`<span>${label}</span>`)
  const shades = shaded.columns.map(
    (at) =>
      html`<rect class="outage" x="${at * columnWidth}" y="0" width="${columnWidth}" height="${height}"><title>${columns[at] ?? ''}: ${shaded.name}</title></rect>`,
  )
  const shadeKey = shades.length > 0 ? [{ name: shaded.name, className: 'outage' }] : []
  const keys = [...series, ...shadeKey].map(
    ({ name, className }) =>
      html`<span class="key"><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="${className}" width="10" height="10"/></svg>${name}</span>`,
  )
  return html`<figure class="chart"><div class="plot">
<div class="ticks" aria-hidden="true"><span>${format(top)}</span><span>${top > 1 ? format(top / 2) : ''}</span><span>${format(0)}</span></div>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}: ${summarise(chart)}">${shades}${lines}${bars}</svg>
<div class="names" aria-hidden="true">${names}</div></div>
<figcaption>${keys}</figcaption>${renderTable(chart)}</figure>`
}

type Column = { readonly at: number; readonly label: string; readonly top: number }

function renderStack({ format, layered = false, series }: Chart, { at, label, top }: Column): Html {
  let y = height
  const bars = series.map(({ name, className, values }) => {
    const value = values[at] ?? 0
    if (value === 0) return none
    const size = Math.max(1, (height * value) / top)
    y = (layered ? height : y) - size
    return html`<rect class="${className}" x="${at * columnWidth}" y="${round(y)}" width="${columnWidth - gap}" height="${round(size)}"><title>${label}: ${format(value)} ${name}</title></rect>`
  })
  return html`${bars}`
}

const round = (value: number): number => Math.round(value * 10) / 10

const summarise = ({ format, series }: Chart): string =>
  series.map(({ name, values }) => `${name} at most ${format(Math.max(0, ...values))}`).join(', ')

function renderTable({ title, columns, series, format }: Chart): Html {
  const rows = columns
    .map((label, at) => ({ label, values: series.map(({ values }) => values[at] ?? 0) }))
    .filter(({ values }) => values.some((value) => value > 0))
    .map(({ label, values }) => [label, ...values.map(format)])
  const shown = table(title, ['time (UTC)', ...series.map(({ name }) => name)], rows, {
    numbers: series.map((_, index) => index + 1),
    empty: 'Nothing in this period.',
  })
  return html`<details><summary>As a table</summary>${shown}</details>`
}
