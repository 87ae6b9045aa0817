/**
 * Compares contenders. They take turns, round by round, so that other work of the machine affects all of
 * them equally. The result is the median of the rounds, and its ratio to the first contender's median.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { renderTable } from '../scripts/table.ts'

export type Contender = {
  readonly name: string
  /** Runs one round and returns its figure: usually a rate per second. */
  readonly round: () => Promise<number>
}

export type Standing = { readonly name: string; readonly median: number; readonly rounds: readonly number[] }

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]]
  return (low + high) / 2
}

export async function interleave(contenders: readonly Contender[], rounds: number): Promise<Standing[]> {
  const results = contenders.map(() => [] as number[])
  for (let round = 0; round < rounds; round++) {
    for (const [index, contender] of contenders.entries()) results[index]?.push(await contender.round())
  }
  return contenders.map(({ name }, index) => ({
    name,
    median: median(results[index] ?? []),
    rounds: results[index] ?? [],
  }))
}

export type Table = { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] }

export const count = (value: number): string => Math.round(value).toLocaleString('en')

/** Medians and ratios to the first one. */
export function standingsTable(what: string, standings: readonly Standing[]): Table {
  const base = standings[0]?.median ?? 1
  return {
    columns: [what, 'per second', 'rounds', 'ratio'],
    rows: standings.map(({ name, median: value, rounds }) => [
      name,
      count(value),
      rounds.map(count).join(', '),
      (value / base).toFixed(2),
    ]),
  }
}

const results = new URL('./results/', import.meta.url)
const page = new URL('../docs/performance.md', import.meta.url)

const machine = () => ({
  cpu: cpus()[0]?.model,
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
})

/**
 * Prints the tables, writes everything measured to `bench/results/NAME.json`, and puts the tables into
 * docs/performance.md if it has a `<!-- bench NAME -->` mark, and they do not compare with another checkout.
 */
export function report(name: string, tables: Readonly<Record<string, Table>>, measured: unknown): void {
  const text = Object.entries(tables)
    .map(
      ([title, { columns, rows }]) =>
        `${title}:\n\n${renderTable(columns, rows, (column) => (column === 0 ? '---' : '---:'))}`,
    )
    .join('\n\n')
  console.log(`\n${text}`)
  mkdirSync(results, { recursive: true })
  writeFileSync(new URL(`${name}.json`, results), `${JSON.stringify({ machine: machine(), measured }, null, 2)}\n`)
  if (process.env.POSTERN_BENCH_BEFORE !== undefined) return
  const place = new RegExp(`(<!-- bench ${name} -->\\n)[^]*?(<!-- end -->)`)
  const { cpu, cores, memoryGiB, node } = machine()
  const day = new Date().toISOString().slice(0, 10)
  const where = `${day}, ${cores} cores of ${cpu}, ${memoryGiB} GiB, Node ${node}.`
  const document = readFileSync(page, 'utf8')
  writeFileSync(
    page,
    document.replace(place, (_, head: string, tail: string) => `${head}\n${text}\n\n${where}\n\n${tail}`),
  )
}

type Round = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number }

/** Accepting in several situations, each with its rounds; the ratio of the p99 is to the first one. */
export function comparedTable(situations: readonly (readonly [string, readonly Round[]])[]): Table {
  const p99Of = (rounds: readonly Round[] = []) => median(rounds.map(({ p99Ms }) => p99Ms))
  const base = p99Of(situations[0]?.[1])
  return {
    columns: ['accepting', 'per second', 'p50 ms', 'p99 ms', 'ratio', 'p99 of the rounds'],
    rows: situations.map(([name, rounds]) => [
      name,
      count(median(rounds.map(({ perSecond }) => perSecond))),
      median(rounds.map(({ p50Ms }) => p50Ms)).toFixed(2),
      p99Of(rounds).toFixed(2),
      (p99Of(rounds) / base).toFixed(2),
      rounds.map(({ p99Ms }) => p99Ms.toFixed(1)).join(', '),
    ]),
  }
}
