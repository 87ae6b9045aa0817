/**
 * `node test/run.ts SUITE… [options of node --test]`: runs suites one after the other, and says at the end
 * what ran on which engine. `npm test` runs the quick ones: `units`, `sqlite` and `postgres`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeGroups } from './support/file-group.ts'
import { installOwnPackages } from './support/own-packages.ts'
import type { Summary } from './support/summary-reporter.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

type Suite = {
  readonly title: string
  readonly files: readonly string[]
  readonly timeoutMs: number
  /** Files at a time. */
  readonly concurrency: number
  readonly buildsClient?: true
  /** A folder with packages of its own, which are installed first. */
  readonly packages?: string
  readonly isPostgres?: true
  /** Among so many processes the files are divided; otherwise each has one of its own. */
  readonly processes?: number
}

const usual = { timeoutMs: 240_000, concurrency: 2 }

export const suites: Readonly<Record<string, Suite>> = {
  units: { title: 'Units', files: ['src/**/*.test.ts'], ...usual, processes: 2 },
  sqlite: {
    title: 'SQLite',
    files: ['test/*.test.ts', 'test/conformance/sqlite*.test.ts', 'test/end-to-end/**/*.test.ts'],
    ...usual,
    concurrency: 3,
    processes: 12,
  },
  postgres: {
    title: 'PostgreSQL',
    files: ['test/conformance/postgres*.test.ts', 'test/end-to-end/engines/*.test.ts'],
    ...usual,
    concurrency: 3,
    processes: 9,
    isPostgres: true,
  },
  client: {
    title: 'Client',
    files: ['client/test/*.test.ts'],
    ...{ ...usual, buildsClient: true, packages: '../client/test/' },
  },
  peers: {
    title: 'Beside other software',
    files: ['test/peers/**/*.test.ts', 'examples/**/*.test.ts'],
    ...{ ...usual, buildsClient: true },
  },
  console: { title: 'Console', files: ['test/console/**/*.test.ts'], ...usual },
  faults: { title: 'Faults', files: ['test/faults/**/*.test.ts'], timeoutMs: 900_000, concurrency: 1 },
}

let running: ChildProcess | null = null
let stopped: NodeJS.Signals | null = null

/** Whether a program ends with 0. */
async function execute(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  running = spawn(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
  const [status] = await once(running, 'exit')
  return status === 0
}

async function run(name: string, options: readonly string[]) {
  const suite = suites[name] as Suite
  if (suite.packages !== undefined && !installOwnPackages(new URL(suite.packages, import.meta.url)))
    return { line: `${suite.title}: skipped, since npm could not install its packages`, isGreen: true }
  if (suite.buildsClient && !(await execute('npm', ['run', 'build', '--workspace', 'client'])))
    return { line: `${suite.title}: the client was not built`, isGreen: false }
  const folder = mkdtempSync(join(tmpdir(), 'postern-run-'))
  const summaryFile = join(folder, 'summary.json')
  writeFileSync(summaryFile, '')
  const isGreen = await execute(
    process.execPath,
    [
      ...['--test', `--test-timeout=${suite.timeoutMs}`, `--test-concurrency=${suite.concurrency}`],
      ...(suite.isPostgres ? ['--test-global-setup=test/support/postgres.ts'] : []),
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...['--test-reporter=./test/support/summary-reporter.ts', `--test-reporter-destination=${summaryFile}`],
      ...options,
      ...filesOf(suite, { folder, options }),
    ],
    {
      NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'),
      ...(suite.isPostgres && { POSTERN_TEST_ENGINE: 'postgres' }),
    },
  )
  const line = `${suite.title}: ${describe(readFileSync(summaryFile, 'utf8'))}`
  rmSync(folder, { recursive: true })
  return { line, isGreen }
}

/** A file that imports other test files runs these once more, so in a process of its own. */
const importsTests = (file: string): boolean => /\bimport\b.*\.test\.ts'/.test(readFileSync(join(root, file), 'utf8'))

/**
 * The files for `node --test`. A file that shares a process is itself a test, which options that select tests
 * by name would leave out: then each has a process of its own.
 */
function filesOf({ files, processes }: Suite, to: { folder: string; options: readonly string[] }): readonly string[] {
  const byName = to.options.some((option) => /^--test-(name-pattern|skip-pattern|only)/.test(option))
  if (processes === undefined || byName) return files
  const all = globSync([...files], { cwd: root }).sort()
  const sharing = all.filter((file) => !importsTests(file))
  return [...writeGroups(to.folder, sharing, processes), ...all.filter(importsTests)]
}

/** @param summary is empty if the tests were stopped, or did not start */
function describe(summary: string): string {
  if (summary === '') return 'ended early'
  const { failed, passed, skipped } = JSON.parse(summary) as Summary
  const reasons = Object.entries(skipped)
  const count = reasons.reduce((sum, [, times]) => sum + times, 0)
  const lines = reasons.map(([why, times]) => `\n  ${times} × ${why}`)
  return `${passed} passed, ${failed} failed, ${count} skipped${lines.join('')}`
}

async function main(): Promise<void> {
  const given = process.argv.slice(2)
  const names = given.filter((argument) => argument in suites)
  const options = given.filter((argument) => !(argument in suites))
  if (names.length === 0) {
    console.error(`Name at least one suite: ${Object.keys(suites).join(', ')}.`)
    process.exit(2)
  }
  // A terminal sends Ctrl-C to the tests as well. A second one ends this process at once.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      stopped = signal
      if (signal === 'SIGTERM') running?.kill(signal)
    })
  const ran = []
  for (const name of names) if (stopped === null) ran.push(await run(name, options))
  console.log(`\n${ran.map(({ line }) => line).join('\n')}`)
  process.exitCode = ran.every(({ isGreen }) => isGreen) ? 0 : 1
  if (stopped !== null) process.kill(process.pid, stopped)
}

if (import.meta.main) await main()
