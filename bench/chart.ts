/** Line charts as SVG, readable on light and dark pages, written next to docs/performance.md. */
import { writeFileSync } from 'node:fs'

export type LineChart = {
  readonly title: string
  /** Positions from left to right, one for each value of a line. */
  readonly x: { readonly label: string; readonly ticks: readonly string[] }
  readonly y: { readonly label: string }
  readonly lines: readonly { readonly name: string; readonly values: readonly number[] }[]
}

const size = { width: 780, height: 400 }
const plot = { left: 56, right: 512, top: 48, bottom: 340 }
// Lines differ in hue and in dash. Each has a contrast of at least 3 to 1 on white and on #0d1117.
const strokes = ['#8a63d2', '#0e8a6c', '#c05a1c', '#2f7fd6', '#b5487e', '#7a7f16']
const dashes = ['', '6 4', '2 3']

/** The least round number (1, 2 or 5 times a power of ten) that is not below `value`. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return (([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) as number) * power
}

const escapeXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

export function lineChart({ title, x, y, lines }: LineChart): string {
  const top = roundUp(Math.max(...lines.flatMap((line) => line.values).filter((value) => !Number.isNaN(value))))
  const across = (at: number) => plot.left + ((plot.right - plot.left) * at) / Math.max(1, x.ticks.length - 1)
  const up = (value: number) => plot.bottom - ((plot.bottom - plot.top) * value) / top
  const text = (atX: number, atY: number, words: string, anchor = 'start') =>
    `<text x="${atX}" y="${atY}" text-anchor="${anchor}">${escapeXml(words)}</text>`
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const atY = up(top * share)
    const rule = `<line x1="${plot.left}" y1="${atY}" x2="${plot.right}" y2="${atY}" class="rule"/>`
    return rule + text(plot.left - 8, atY + 4, String(Number((top * share).toPrecision(3))), 'end')
  })
  const ticks = x.ticks.map((tick, at) => text(across(at), plot.bottom + 20, tick, 'middle'))
  const drawn = lines.map(({ name, values }, index) => {
    const stroke = strokes[index % strokes.length]
    const line = `stroke="${stroke}" stroke-dasharray="${dashes[index % dashes.length]}"`
    const points = values
      .flatMap((value, at) => (Number.isNaN(value) ? [] : [`${across(at).toFixed(1)},${up(value).toFixed(1)}`]))
      .join(' ')
    const legendY = plot.top + 8 + index * 22
    const sample = `<line x1="532" y1="${legendY - 4}" x2="556" y2="${legendY - 4}" ${line} class="line"/>`
    return `<polyline points="${points}" ${line} class="line"/>${sample}${text(564, legendY, name)}`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${escapeXml(title)}">
<style>text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-size:15px;font-weight:600}.rule{stroke:#8b949e;stroke-opacity:.3}.line{fill:none;stroke-width:2}@media (prefers-color-scheme:dark){text{fill:#9aa4af}}</style>
<text x="${plot.left}" y="24" class="title">${escapeXml(title)}</text>
${[...grid, ...ticks, ...drawn].join('\n')}
${text(plot.left - 8, plot.top - 10, y.label, 'end')}
${text((plot.left + plot.right) / 2, plot.bottom + 44, x.label, 'middle')}
</svg>
`
}

export const writeChart = (name: string, svg: string): void =>
  writeFileSync(new URL(`../docs/performance-${name}.svg`, import.meta.url), svg)
