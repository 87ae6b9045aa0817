/**
 * `npm run release -- X.Y.Z`: writes the version and the address of the repository everywhere, dates the
 * changelog, runs the checks and the tests, commits and tags. Publishes nothing: pushing the tag does
 * (.github/workflows/release.yml). `--check vX.Y.Z` only says whether a tag matches the files.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './build.ts'
import { writeSurface } from './surface.ts'

/** The manifests that have the version, and the documents that name artifacts by it. */
export const manifests = ['package.json', 'client/package.json', 'tools/node/package.json']
export const naming = [
  ...['docs/install.md', 'docs/nextjs.md', 'docs/authjs.md', 'client/README.md'],
  ...['deploy/compose.yaml', 'deploy/kubernetes.yaml', 'deploy/kustomization.yaml', '.ci/image'],
]

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const versionIn = (file: string): string => (JSON.parse(read(file)) as { version: string }).version

class Refused extends Error {}

function change(file: string, edit: (text: string) => string): void {
  writeFileSync(join(root, file), edit(read(file)))
}

function check(tag: string): void {
  for (const file of manifests)
    if (`v${versionIn(file)}` !== tag)
      throw new Refused(`${file} has version ${versionIn(file)}, and the tag is ${tag}`)
  if (!new RegExp(`^## ${tag.slice(1)} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, 'm').test(read('CHANGELOG.md')))
    throw new Refused(`CHANGELOG.md has no dated entry for ${tag}`)
}

function release(version: string): void {
  if (git('status', '--porcelain') !== '') throw new Refused('the tree has changes that are not committed')
  if (git('tag', '--list', `v${version}`) !== '') throw new Refused(`the tag v${version} exists`)
  const heading = `## ${version} (unreleased)`
  if (!read('CHANGELOG.md').includes(`\n${heading}\n`))
    throw new Refused(`CHANGELOG.md has no heading "${heading}": write its entry first`)
  const host = findHost()
  try {
    writeHost(host)
    writeVersion(version)
    change('CHANGELOG.md', (text) => text.replace(heading, `## ${version} (${new Date().toISOString().slice(0, 10)})`))
    const run = (program: string, ...args: string[]) => execFileSync(program, args, { cwd: root, stdio: 'inherit' })
    for (const script of ['check', 'test']) run('npm', 'run', script)
    writeSurface(version) // now: the tests compare with the release before
    run(process.execPath, 'test/conformance/sample.ts', version)
    const upgrade = ['--test-global-setup=test/support/postgres.ts', 'test/conformance/postgres-upgrade.test.ts']
    run(process.execPath, '--test', ...upgrade)
  } catch {
    git('checkout', '--', '.')
    git('clean', '--quiet', '--force', 'releases')
    throw new Refused('the checks or the tests failed; nothing was changed')
  }
  const [, entry = ''] = read('CHANGELOG.md').split(/^## /m)
  git('add', 'releases')
  git('commit', '--all', '--message', `Release ${version}`)
  git('tag', '--annotate', `v${version}`, '--cleanup=verbatim', '--message', `Postern ${entry.trim()}`)
  console.log(`tagged v${version}. Next: git push --follow-tags, and approve the release`)
}

/** The web address of the repository that `origin` names, such as https://github.com/OWNER/REPOSITORY. */
function findHost(): string {
  const [, host, path] = /^(?:https:\/\/|ssh:\/\/git@|git@)([\w.-]+)[/:]([\w./-]+?)(?:\.git)?$/.exec(
    git('remote', 'get-url', 'origin'),
  ) ?? ['']
  if (path === undefined) throw new Refused('the remote "origin" is no address of a repository on the web')
  return `https://${host}/${path}`
}

/** The packages say where they come from; npm shows it, and completes the links of their README by it. */
function writeHost(host: string): void {
  for (const directory of ['', 'client'])
    change(join(directory, 'package.json'), (text) => {
      const repository = { type: 'git', url: `git+${host}.git`, ...(directory !== '' && { directory }) }
      const place = { homepage: `${host}#readme`, bugs: `${host}/issues`, repository }
      return `${JSON.stringify({ ...JSON.parse(text), ...place }, null, 2)}\n`
    })
}

function writeVersion(version: string): void {
  const before = versionIn('package.json')
  const minor = (text: string): string => text.split('.').slice(0, 2).join('.')
  for (const file of manifests)
    change(file, (text) => text.replace(`"version": "${before}"`, `"version": "${version}"`))
  change('package-lock.json', (text) => {
    const lock = JSON.parse(text)
    for (const entry of [lock, ...['', 'client', 'tools/node'].map((name) => lock.packages[name])])
      entry.version = version
    return `${JSON.stringify(lock, null, 2)}\n`
  })
  for (const file of naming)
    change(file, (text) =>
      text
        .replaceAll(`postern:${minor(before)}`, `postern:${minor(version)}`)
        .replaceAll(new RegExp(`(postern(?:-client)?[-_])${before.replaceAll('.', '\\.')}`, 'g'), `$1${version}`),
    )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
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
}
