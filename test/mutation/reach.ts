/** Which test files reach which lines of `src/`: each test file runs once under V8's coverage. */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Suite = { readonly file: string; readonly engine: 'sqlite' | 'postgres' }
export type Reach = Suite & {
  /** How long it took. */
  readonly ms: number
  /** By file of `src/`, the lines that ran; they count from 1. */
  readonly lines: Readonly<Record<string, readonly number[]>>
}

export const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * The suites of `npm test` and `test:console`. Faults and peers are left out: they take minutes, or need what
 * a machine may lack.
 */
export function listSuites(): Suite[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Readonly<Record<string, string>>
  }
  const list = (engine: Suite['engine'], ...names: string[]): Suite[] => {
    const patterns = names.flatMap((name) => scripts[name]?.match(/(?<=")[^"$]+\.test\.ts(?=")/g) ?? [])
    return globSync(patterns, { cwd: root }).map((file) => ({ file, engine }))
  }
  return [...list('sqlite', 'test:sqlite', 'test:console'), ...list('postgres', 'test:postgres')]
}

/** Runs one test file in a checkout; whether it passed. It is stopped after `withinMs`, which is no pass. */
export async function runSuite(
  { file, engine }: Suite,
  folder: string,
  { withinMs, env = {} }: { readonly withinMs: number; readonly env?: Record<string, string> },
): Promise<boolean> {
  const setup = engine === 'postgres' ? ['--test-global-setup=test/support/postgres.ts'] : []
  const child = spawn(process.execPath, ['--test', ...setup, file], {
    cwd: folder,
    detached: true, // a group of its own, so that what it started ends with it
    stdio: 'ignore',
    env: { ...process.env, ...env, ...(engine === 'postgres' && { POSTERN_TEST_ENGINE: 'postgres' }) },
  })
  const stop = () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {} // it has ended
  }
  const timer = setTimeout(stop, withinMs)
  const code = await new Promise((resolve) => child.once('exit', resolve))
  clearTimeout(timer)
  stop()
  return code === 0
}

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number }
type Script = { readonly url: string; readonly functions: readonly { readonly ranges: readonly Range[] }[] }

/** The reach of every suite in a checkout; from `cache` if it is there. */
export async function measureReach(checkout: string, cache: string): Promise<Reach[]> {
  try {
    return JSON.parse(readFileSync(cache, 'utf8')) as Reach[]
  } catch {} // there is none yet
  const all: Reach[] = []
  const left = listSuites()
  const work = async () => {
    for (let suite = left.shift(); suite !== undefined; suite = left.shift()) {
      const folder = mkdtempSync(join(tmpdir(), 'postern-coverage-'))
      chmodSync(folder, 0o777) // some tests run commands as another user
      const beganMs = performance.now()
      const passed = await runSuite(suite, checkout, { withinMs: 240_000, env: { NODE_V8_COVERAGE: folder } })
      const ms = Math.round(performance.now() - beganMs)
      if (passed) all.push({ ...suite, ms, lines: readLines(folder, checkout) })
      else console.log(`left out, because it fails or is skipped: ${suite.engine} ${suite.file}`)
      rmSync(folder, { recursive: true, force: true })
    }
  }
  await Promise.all([work(), work()])
  mkdirSync(join(root, '.mutation'), { recursive: true })
  writeFileSync(cache, JSON.stringify(all))
  return all
}

function readLines(folder: string, checkout: string): Record<string, number[]> {
  const reached = new Map<string, Set<number>>()
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: Script[] }
    for (const { url, functions } of result) {
      const file = url.startsWith('file://') ? relative(checkout, fileURLToPath(url)) : ''
      if (!/^src\/.*(?<!\.test)\.ts$/.test(file)) continue
      const lines = reached.get(file) ?? new Set()
      for (const line of linesOf(readFileSync(join(checkout, file), 'utf8'), functions)) lines.add(line)
      reached.set(file, lines)
    }
  }
  return Object.fromEntries([...reached].map(([file, lines]) => [file, [...lines].sort((a, b) => a - b)]))
}

/** A line ran if the innermost range around its first character did. */
function linesOf(source: string, functions: Script['functions']): number[] {
  const counts = new Array<number>(source.length + 1).fill(0)
  const ranges = functions.flatMap((found) => found.ranges)
  const size = ({ startOffset, endOffset }: Range) => endOffset - startOffset
  for (const { startOffset, endOffset, count } of ranges.toSorted((a, b) => size(b) - size(a)))
    counts.fill(count, startOffset, endOffset)
  let offset = 0
  return source.split('\n').flatMap((line, index) => {
    const first = offset + line.search(/\S|$/)
    offset += line.length + 1
    return (counts[first] ?? 0) > 0 ? [index + 1] : []
  })
}
