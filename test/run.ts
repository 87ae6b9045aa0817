/**
 * `node test/run.ts SUITE… [options of node --test]`: runs suites one after the other, and says at the end
 * what ran on which engine. `npm test` runs the two quick ones, `sqlite` and `postgres`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Summary } from './support/summary-reporter.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

type Suite = {
  readonly title: string
  readonly files: readonly string[]
  readonly timeoutMs: number
  /** Files at a time. */
  readonly concurrency: number
  readonly buildsClient?: true
  readonly isPostgres?: true
}

const usual = { timeoutMs: 240_000, concurrency: 2 }

const suites: Readonly<Record<string, Suite>> = {
  sqlite: {
    title: 'SQLite',
    files: [
      ...['src/**/*.test.ts', 'test/*.test.ts', 'test/conformance/sqlite*.test.ts'],
      ...['test/end-to-end/**/*.test.ts', 'client/test/*.test.ts'],
    ],
    ...{ ...usual, concurrency: 4, buildsClient: true },
  },
  postgres: {
    title: 'PostgreSQL',
    files: ['test/conformance/postgres*.test.ts', 'test/end-to-end/engines/*.test.ts'],
    ...{ ...usual, concurrency: 4, isPostgres: true },
  },
  peers: {
    title: 'Beside other software',
    files: ['test/peers/**/*.test.ts', 'examples/**/*.test.ts'],
    ...{ ...usual, buildsClient: true },
  },
  console: { title: 'Console', files: ['test/console/**/*.test.ts'], ...usual },
  faults: { title: 'Faults', files: ['test/faults/**/*.test.ts'], timeoutMs: 900_000, concurrency: 1 },
}

const given = process.argv.slice(2)
const names = given.filter((argument) => argument in suites)
const options = given.filter((argument) => !(argument in suites))

function run(name: string): { readonly line: string; readonly isGreen: boolean } {
  const { buildsClient, concurrency, files, isPostgres, timeoutMs, title } = suites[name] as Suite
  const folder = mkdtempSync(join(tmpdir(), 'postern-run-'))
  const summaryFile = join(folder, 'summary.json')
  if (buildsClient) {
    const built = spawnSync('npm', ['run', 'build', '--workspace', 'client'], { cwd: root, stdio: 'inherit' })
    if (built.status !== 0) return { line: `${title}: the client was not built`, isGreen: false }
  }
  const { status, signal } = spawnSync(
    process.execPath,
    [
      ...['--test', `--test-timeout=${timeoutMs}`, `--test-concurrency=${concurrency}`],
      ...(isPostgres ? ['--test-global-setup=test/support/postgres.ts'] : []),
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...['--test-reporter=./test/support/summary-reporter.ts', `--test-reporter-destination=${summaryFile}`],
      ...options,
      ...files,
    ],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'),
        ...(isPostgres && { POSTERN_TEST_ENGINE: 'postgres' }),
      },
    },
  )
  if (signal !== null) process.kill(process.pid, signal)
  const line = describe(title, readSummary(summaryFile))
  rmSync(folder, { recursive: true })
  return { line, isGreen: status === 0 }
}

function readSummary(file: string): Summary | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Summary
  } catch {
    return null
  }
}

function describe(title: string, summary: Summary | null): string {
  if (summary === null) return `${title}: ended early`
  const { failed, passed, skipped } = summary
  const reasons = Object.entries(skipped).map(([why, count]) => `\n  ${count} × ${why}`)
  return `${title}: ${passed} passed, ${failed} failed${reasons.join('')}`
}

if (names.length === 0) {
  console.error(`Name at least one suite: ${Object.keys(suites).join(', ')}.`)
  process.exit(2)
}
const ran = names.map(run)
console.log(`\n${ran.map(({ line }) => line).join('\n')}`)
process.exitCode = ran.every(({ isGreen }) => isGreen) ? 0 : 1
