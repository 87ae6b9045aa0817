/**
 * `npm run mutation`: puts small faults into `src/`, one at a time, and runs the tests that reach the line.
 * Prints each fault that no test noticed, and writes all to `.mutation/report.json`. Works on the last
 * commit, in copies of the checkout. A seed draws the faults: `-- --seed 7 --sample 150 --only store/`.
 */
import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Fault, faultsOf } from './faults.ts'
import { measureReach, type Reach, root, runSuite } from './reach.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    sample: { type: 'string', default: '150' },
    only: { type: 'string', default: '' },
  },
})

/** The tests of one fault take this long at most. */
const testsMaxMs = 240_000
const workers = 2

type Placed = Fault & { readonly file: string; readonly line: number }
type Verdict = Placed & {
  readonly was: string
  readonly verdict: 'noticed' | 'survived' | 'unreached'
  readonly by: string | null
}

/** Mulberry32: the same faults for the same seed and the same files. */
function newRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function allFaults(folder: string): Placed[] {
  const files = globSync(['src/**/*.ts', 'src/**/functions/*.sql'], { cwd: folder }).sort()
  return files
    .filter((file) => !file.endsWith('.test.ts') && file.includes(values.only))
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      return faultsOf(file, text).map((fault) => ({
        ...fault,
        file,
        line: text.slice(0, fault.start).split('\n').length,
      }))
    })
}

function newCopy(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mutation-'))
  chmodSync(folder, 0o755) // some tests run commands as another user
  execFileSync('git', ['clone', '--quiet', '--shared', root, folder])
  for (const installed of ['node_modules', 'client/node_modules'])
    symlinkSync(join(root, installed), join(folder, installed))
  cpSync(join(root, 'client/dist'), join(folder, 'client/dist'), { recursive: true })
  return folder
}

/** A fault that the compiler refuses is not counted, and another one is drawn. */
async function compiles(folder: string): Promise<boolean> {
  const ignored = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false']
  const kept = ['--incremental', '--tsBuildInfoFile', join(folder, '.tsbuildinfo')]
  const project = ['--project', 'tsconfig.build.json', '--noEmit']
  const tsc = spawn('node_modules/.bin/tsc', [...project, ...ignored, ...kept], { cwd: folder })
  return (await new Promise((resolve) => tsc.once('exit', resolve))) === 0
}

/**
 * Those that reach the line; SQL by all suites of its engine. Those whose name has a word of the file's come
 * first, then those that reach the fewest files.
 */
function testsOf({ file, line }: Placed, reach: readonly Reach[]): Reach[] {
  const reaches = ({ engine, lines }: Reach) =>
    file.endsWith('.sql') ? engine === 'postgres' : lines[file]?.includes(line)
  let tookMs = 0
  return reach
    .filter(reaches)
    .toSorted((a, b) => sharedWords(b, file) - sharedWords(a, file) || breadth(a) - breadth(b))
    .filter(({ ms }) => {
      tookMs += ms
      return tookMs < testsMaxMs
    })
}

function sharedWords(test: Reach, source: string): number {
  const words = (path: string) => new Set(path.split(/\W+/))
  return words(basename(test.file, '.test.ts')).intersection(words(source)).size
}

const breadth = ({ lines }: Reach): number => Object.keys(lines).length

/** Null for a fault that does not compile. */
async function tryFault(fault: Placed, folder: string, reach: readonly Reach[]): Promise<Verdict | null> {
  const path = join(folder, fault.file)
  const text = readFileSync(path, 'utf8')
  const was = text.slice(fault.start, fault.end)
  writeFileSync(path, text.slice(0, fault.start) + fault.replacement + text.slice(fault.end))
  try {
    if (!(await compiles(folder))) return null
    const tests = testsOf(fault, reach)
    if (tests.length === 0) return { ...fault, was, verdict: 'unreached', by: null }
    for (const test of tests)
      if (!(await runSuite(test, folder, { withinMs: 3 * test.ms + 30_000 })))
        return { ...fault, was, verdict: 'noticed', by: `${test.engine} ${test.file}` }
    return { ...fault, was, verdict: 'survived', by: null }
  } finally {
    writeFileSync(path, text)
  }
}

const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
const folders = Array.from({ length: workers }, newCopy)
const reach = await measureReach(folders[0] ?? '', join(root, `.mutation/reach-${commit}.json`))
const random = newRandom(Number(values.seed))
const drawn = allFaults(folders[0] ?? '')
  .map((fault) => ({ fault, order: random() }))
  .toSorted((a, b) => a.order - b.order)
  .map(({ fault }) => fault)
const wanted = Number(values.sample)
const verdicts: Verdict[] = []
console.log(`${drawn.length} possible faults; a sample of ${wanted} by the seed ${values.seed}`)

async function work(folder: string): Promise<void> {
  try {
    if (!(await compiles(folder))) throw new Error('the last commit does not compile')
    while (verdicts.length < wanted) {
      const fault = drawn.shift()
      if (fault === undefined) return
      const verdict = await tryFault(fault, folder, reach)
      if (verdict === null) continue
      verdicts.push(verdict)
      writeFileSync(join(root, '.mutation/report.json'), `${JSON.stringify(verdicts, null, 2)}\n`)
      if (verdict.verdict === 'noticed') continue
      const { file, line, kind, was, replacement } = verdict
      console.log(`${verdict.verdict}: ${file}:${line} ${kind}\n  - ${was}\n  + ${replacement}`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
await Promise.all(folders.map(work))

const noticed = verdicts.filter(({ verdict }) => verdict === 'noticed').length
console.log(`${noticed} of ${verdicts.length} faults were noticed`)
