/**
 * How every benchmark here measures: contenders take turns, round by round, so that whatever else
 * the machine does meets all of them alike; what counts is the median of the rounds, and how it
 * stands to the first contender's.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'

export type Contender = {
  readonly name: string
  /** One round: how many a second. */
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

/** Runs `work` on so many clients for so long: how many a second were done. */
export async function rate(
  clients: number,
  ms: number,
  work: (client: number) => Promise<unknown>,
): Promise<number> {
  let done = 0
  const begunMs = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() - begunMs < ms) {
        await work(client)
        done += 1
      }
    }),
  )
  return (done * 1000) / (performance.now() - begunMs)
}

export type Table = { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] }

/** A Markdown table. */
function formatTable({ columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    line(columns),
    line(columns.map((_, index) => (index === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n')
}

export const count = (value: number): string => Math.round(value).toLocaleString('en')

/** Medians and ratios to the first one. */
export function standingsTable(what: string, standings: readonly Standing[]): Table {
  const base = standings[0]?.median ?? 1
  return {
    columns: [what, 'a second', 'rounds', 'ratio'],
    rows: standings.map(({ name, median: value, rounds }) => [
      name,
      count(value),
      rounds.map(count).join(', '),
      (value / base).toFixed(2),
    ]),
  }
}

const results = new URL('./results/', import.meta.url)

/** Prints tables, and keeps everything measured as `bench/results/NAME.json`. */
export function report(name: string, tables: Readonly<Record<string, Table>>, measured: unknown): void {
  const [cpu] = cpus()
  const machine = {
    cpu: cpu?.model,
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  }
  for (const [title, table] of Object.entries(tables)) console.log(`\n${title}\n\n${formatTable(table)}`)
  mkdirSync(results, { recursive: true })
  writeFileSync(new URL(`${name}.json`, results), `${JSON.stringify({ machine, measured }, null, 2)}\n`)
}
