/**
 * `npm run release -- X.Y.Z`: sets the version everywhere, dates the changelog, commits and tags. Publishes nothing:
 * pushing the tag does (.github/workflows/release.yml). `--check vX.Y.Z` only says whether a tag fits the files.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './build.ts'

const manifests = ['package.json', 'client/package.json', 'tools/node/package.json']
const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const write = (file: string, text: string): void => writeFileSync(join(root, file), text)

class Refused extends Error {}

/** The version of every manifest and of the changelog's newest entry. */
function versions(): Record<string, string | undefined> {
  const found = manifests.map((file) => [file, (JSON.parse(read(file)) as { version: string }).version])
  return { ...Object.fromEntries(found), 'CHANGELOG.md': /^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1] }
}

function check(tag: string): void {
  for (const [file, version] of Object.entries(versions()))
    if (`v${version}` !== tag) throw new Refused(`${file} has version ${version}, and the tag is ${tag}`)
  if (/^## \S+ \(unreleased\)/m.test(read('CHANGELOG.md')))
    throw new Refused('CHANGELOG.md: the newest entry has no date')
}

function release(version: string): void {
  if (git('status', '--porcelain') !== '') throw new Refused('the tree has changes that are not committed')
  if (git('tag', '--list', `v${version}`) !== '') throw new Refused(`the tag v${version} exists`)
  const changelog = read('CHANGELOG.md')
  const heading = `## ${version} (unreleased)`
  if (!changelog.includes(`\n${heading}\n`))
    throw new Refused(`CHANGELOG.md has no heading "${heading}": write its entry first`)
  execFileSync('npm', ['run', 'check'], { cwd: root, stdio: 'inherit' })
  execFileSync('npm', ['test'], { cwd: root, stdio: 'inherit' })
  const before = versions()['package.json'] ?? ''
  for (const file of manifests)
    write(file, read(file).replace(`"version": "${before}"`, `"version": "${version}"`))
  const lock = JSON.parse(read('package-lock.json'))
  lock.version = version
  for (const name of ['', 'client', 'tools/node']) lock.packages[name].version = version
  write('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
  write(
    'CHANGELOG.md',
    changelog.replace(heading, `## ${version} (${new Date().toISOString().slice(0, 10)})`),
  )
  const entry = read('CHANGELOG.md').split(/^## /m)[1] ?? ''
  git('commit', '--all', '--message', `Release ${version}`)
  git('tag', '--annotate', `v${version}`, '--message', `Postern ${entry.trim()}`, '--cleanup=verbatim')
  console.log(`tagged v${version}. Next: git push --follow-tags, and approve the release`)
}

const [first = '', second = ''] = process.argv.slice(2)
try {
  if (first === '--check') check(second)
  else if (/^\d+\.\d+\.\d+$/.test(first)) release(first)
  else throw new Refused('give a version: npm run release -- 0.2.0')
} catch (error) {
  if (!(error instanceof Refused)) throw error
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}
