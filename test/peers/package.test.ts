/**
 * The npm package as a stranger would use it: built, packed, installed in the folder of an app, and run. And
 * the end of a start on a Node that is too old.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { publint } from 'publint'
import { dropDeadLinks } from '../../scripts/drop-dead-links.ts'
import { newDocument } from '../../src/web/operators/api/openapi.ts'
import { commandsOf } from '../support/document.ts'
import { lackingNode20, node20 } from '../support/node20.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = temporaryFolder({ after })
const app = join(folder, 'app')
const npm = (args: string[], cwd: string): string =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

npm(['run', 'build'], root)
type Packed = { filename: string; files: { path: string }[] }
const [packed] = JSON.parse(
  npm(['pack', '--json', '--pack-destination', folder, join(root, 'dist')], folder),
) as Packed[]
const tarball = join(folder, packed?.filename ?? '')

mkdirSync(app)
writeFileSync(join(app, 'package.json'), '{"name":"an-app","private":true}')
execFileSync('git', ['init', '--quiet'], { cwd: app })
writeFileSync(join(app, '.gitignore'), 'node_modules/\n')
const [, install = '', dev = ''] = commandsOf('docs/install.md', 'npm')[0]?.trim().split('\n') ?? []
npm(['install', '--save-dev', '--prefer-offline', '--no-audit', '--no-fund', tarball], app)
execFileSync('git', ['add', '--all'], { cwd: app })

test('it holds built code, migrations and documents, and nothing else', () => {
  const files = packed?.files.map(({ path }) => path) ?? []
  const known =
    /^(package\.json|README\.md|LICENSE(\.typebox)?|CHANGELOG\.md|docs\/[\w-]+\.(md|yaml)|docs\/management\.json|bin\/(postern|healthcheck)\.js|src\/[\w/-]+\.(js|sql)|src\/templates\/locales\/(forms\/)?[\w.-]+\.json|src\/web\/operators\/console\/browser\/\w+\.(css|svg))$/
  assert.deepEqual(
    files.filter((file) => !known.test(file)),
    [],
  )
  assert.ok(files.includes('src/store/sqlite/migrations/001_initial.sql'))
  assert.ok(files.some((file) => file.startsWith('src/store/postgres/queue/functions/')))
  assert.deepEqual(
    files.filter((file) => /\.test\.|\.ts$/.test(file)),
    [],
  )
})

test('its documents link to files that it holds', () => {
  const dist = join(root, 'dist')
  const readLinks = (folder: string) =>
    globSync('{,docs/}*.md', { cwd: folder }).flatMap((file) =>
      Array.from(readFileSync(join(folder, file), 'utf8').matchAll(/\]\(([^)#]+)[^)]*\)/g), ([, target = '']) =>
        join(dirname(file), target),
      ).filter((target) => !target.includes(':')),
    )
  const missing = (folder: string) => readLinks(folder).filter((file) => !existsSync(join(folder, file)))
  assert.ok(readLinks(dist).length > 50)
  assert.deepEqual(missing(dist), [])
  const flat = join(folder, 'flat')
  for (const part of ['docs', 'README.md', 'CHANGELOG.md'])
    cpSync(join(dist, part), part === 'docs' ? flat : join(flat, part), { recursive: true })
  assert.notDeepEqual(missing(flat), [])
  dropDeadLinks(flat, { flat: true })
  assert.deepEqual(missing(flat), [])
  assert.ok(readLinks(flat).length > 50)
})

test('it brings the document of the management API', () => {
  const document = JSON.parse(readFileSync(join(root, 'dist/docs/management.json'), 'utf8'))
  assert.deepEqual(document, JSON.parse(JSON.stringify(newDocument(document.info.version))))
})

test('publint has nothing to say', async () => {
  const bytes = new Uint8Array(readFileSync(tarball))
  const { messages } = await publint({ pack: { tarball: bytes.buffer }, strict: true })
  assert.deepEqual(messages, [])
})

test('as docs/install.md has it: dev mode answers the printed line, captures the email, holds little memory, and leaves no trace in git', async (t) => {
  assert.match(install, /^npm install --save-dev \S+\/postern-\d+\.\d+\.\d+\.tgz$/)
  assert.equal(dev, 'npx --no postern dev')
  const anyPort = Object.fromEntries(
    ['API', 'LINKS', 'OPS', 'CONSOLE'].map((name) => [`POSTERN_${name}_LISTEN`, '127.0.0.1:0']),
  )
  const child = spawn(process.execPath, [join(app, 'node_modules/.bin/postern'), 'dev'], {
    cwd: app,
    env: { PATH: process.env.PATH, ...anyPort },
  })
  atEnd(t, () => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const line = await eventually(() => /^curl .*$/m.exec(output)?.[0])
  const inbox = /Console {2}(\S+)/.exec(output)?.[1] ?? ''
  assert.equal(execFileSync('sh', ['-c', `${line} -sS`], { encoding: 'utf8' }).trim(), '{"ok":true}')
  await eventually(async () => (await fetch(`${inbox}/api/inbox/latest?to=you@example.com`)).ok)
  const [, kilobytes = 0] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
  assert.ok(Number(kilobytes) < 150_000, `it holds ${kilobytes} KiB: what was needed only to start is kept`)
  child.kill('SIGTERM')
  await new Promise((resolve) => child.once('exit', resolve))
  assert.doesNotMatch(output, /Warning/)
  const status = execFileSync('git', ['status', '--porcelain', '--', ':!package-lock.json'], {
    cwd: app,
    encoding: 'utf8',
  })
  assert.doesNotMatch(status, /\.postern/)
})

test('on Node 20 it says what to do', {
  skip: lackingNode20,
}, () => {
  const say = (program: string) => {
    const ran = spawnSync(node20, [program, '--version'], { encoding: 'utf8' })
    assert.equal(ran.status, 1)
    return ran.stderr
  }
  const installed = say(join(app, 'node_modules/postern/bin/postern.js'))
  assert.match(installed, /needs Node 24 or newer; this is v20\..*\nInstall a newer Node; the container image/)
  assert.match(say(join(root, 'bin/postern.js')), /"npm ci" \(without --omit\) installs one/)
})
