/** Every test is in a suite, and a suite looks for the tools that `test/needs.json` names, and no others. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { test } from 'node:test'
import needs from './needs.json' with { type: 'json' }
import { suites } from './run.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const find = (patterns: string[]): string[] =>
  globSync(patterns, { cwd: root, exclude: (name) => /(^|\/)(node_modules|dist)$/.test(name) })

/** The files of a suite, and those of `test/support/` that they import. */
function filesOf(suite: string): Set<string> {
  const files = new Set(find([...(suites[suite]?.files ?? [])]))
  for (const file of files)
    for (const [, name] of read(file).matchAll(/ from '\.[^']*?\/([\w-]+\.ts)'/g))
      if (supports.has(`test/support/${name}`)) files.add(`test/support/${name}`)
  return files
}

/** Whether a suite names a tool at all. `packages` is what `.ci/run` does beside tests. */
const names = (suite: string, tool: string): boolean =>
  suite === 'packages'
    ? ['.ci/run', '.ci/deb', '.ci/image'].some((file) => new RegExp(`\\b${tool}\\b`).test(read(file)))
    : [...filesOf(suite)].some((file) => read(file).includes(`'${tool}'`))

const supports = new Set(find(['test/support/*.ts']))
// The system has them, or npm.
const everywhere = 'apt-cache bash cat cp git id mkfifo mv npm npx sh'.split(' ')

test('every test is in a suite', () => {
  const globs = Object.values(suites).flatMap(({ files }) => files)
  const tests = find(['{bench,client,examples,scripts,src,test}/**/*.test.ts'])
  assert.ok(tests.length > 200)
  assert.deepEqual(
    tests.filter((file) => !globs.some((glob) => matchesGlob(file, glob))),
    [],
  )
})

test('suites look for the tools of test/needs.json, which names the suites', () => {
  const found = new Map<string, Set<string>>()
  for (const suite of Object.keys(suites))
    for (const file of filesOf(suite))
      for (const [, list = ''] of read(file).matchAll(/\blacking\(('[^)]*')\)/g))
        for (const name of list.split(', ')) {
          const tool = name.slice(1, -1)
          found.set(tool, (found.get(tool) ?? new Set()).add(suite))
        }
  for (const [tool, need] of Object.entries(needs)) {
    const users = found.get(tool)
    if (users !== undefined) assert.deepEqual(need.suites, [...users].sort(), tool)
    else for (const suite of need.suites) assert.ok(names(suite, tool), `${suite} does not use ${tool}`)
  }
})

test('suites run no other programs', () => {
  const files = new Set(Object.keys(suites).flatMap((suite) => [...filesOf(suite)]))
  for (const file of files) {
    const text = read(file)
    for (const [, name = ''] of text.matchAll(/\b(?:spawn|execFile)(?:Sync)?\(\s*'([^']+)'/g))
      assert.ok(Object.hasOwn(needs, name) || everywhere.includes(name), `${file} runs ${name}`)
    if (!/\/(installed|suites\.test)\.ts$/.test(file))
      assert.doesNotMatch(text, /'\/usr\/s?bin\/|\bPOSTERN_TEST_TOOLS\b/, file)
  }
})
