/**
 * `npm run mutation`: changes the pure domain in thousands of small ways and runs its tests on each
 * mutant. Prints a score per file and writes it into docs/reliability.md; writes every survivor to
 * .stryker/mutants.json. `npm run mutation -- --mutate src/domain/id.ts` tries one file and writes no
 * document.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { installOwnPackages } from './support/own-packages.ts'

type Position = { readonly line: number; readonly column: number }
type Mutant = {
  readonly status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'Ignored' | 'RuntimeError' | 'CompileError'
  readonly mutatorName: string
  readonly replacement: string
  readonly location: { readonly start: Position; readonly end: Position }
}
type Report = {
  readonly files: Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>
}

const args = process.argv.slice(2)
const folder = new URL('./mutation/', import.meta.url)
if (!installOwnPackages(folder)) throw new Error('npm could not install Stryker')
const program = fileURLToPath(new URL('node_modules/.bin/stryker', folder))
const stryker = spawnSync(program, ['run', ...args], { stdio: 'inherit' })
if (stryker.status !== 0) process.exit(stryker.status ?? 1)

const { files } = JSON.parse(readFileSync('.stryker/mutation.json', 'utf8')) as Report

const scores = Object.entries(files)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([file, { mutants }]) => {
    const count = (...statuses: Mutant['status'][]) => mutants.filter(({ status }) => statuses.includes(status)).length
    const killed = count('Killed', 'Timeout')
    const survived = count('Survived', 'NoCoverage')
    const total = killed + survived
    return { file, mutants: total, killed, survived, score: total === 0 ? 100 : (100 * killed) / total }
  })

const survivors = Object.entries(files).flatMap(([file, { source, mutants }]) =>
  mutants
    .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
    .map(({ status, mutatorName, replacement, location: { start, end } }) => ({
      at: `${file}:${start.line}:${start.column}`,
      status,
      mutator: mutatorName,
      original: textBetween(source, start, end),
      replacement,
    })),
)

/** Lines and columns count from 1. */
function textBetween(source: string, start: Position, end: Position): string {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const last = lines.length - 1
  lines[last] = (lines[last] ?? '').slice(0, end.column - 1)
  lines[0] = (lines[0] ?? '').slice(start.column - 1)
  return lines.join('\n')
}

const table = [
  '| file of `src/domain/` | mutants | killed | score |',
  '| --- | ---: | ---: | ---: |',
  ...scores
    .filter(({ mutants }) => mutants > 0)
    .map(({ file, mutants, killed, score }) => {
      const name = file.replace('src/domain/', '')
      return `| \`${name}\` | ${mutants} | ${killed} | ${score.toFixed(1)}% |`
    }),
].join('\n')

console.log(table)
writeFileSync('.stryker/mutants.json', `${JSON.stringify({ scores, survivors }, null, 2)}\n`)

if (args.length === 0) {
  const path = 'docs/reliability.md'
  const document = readFileSync(path, 'utf8')
  const [before, rest = ''] = document.split('<!-- mutation -->')
  const [, after = ''] = rest.split('<!-- end of mutation -->')
  writeFileSync(path, `${before}<!-- mutation -->\n\n${table}\n\n<!-- end of mutation -->${after}`)
}
