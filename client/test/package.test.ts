/**
 * The package as npm would publish it: its files, that it installs and runs on Node 20 and on this
 * Node, that its types hold without this repository, and its size.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { publint } from 'publint'
import { lackingNode20, node20 } from '../../test/support/node20.ts'
import { temporaryFolder } from '../../test/support/temporary.ts'

const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const tsc = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url))
const folder = temporaryFolder({ after })
const manifest = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
  exports: Record<string, { default: string } | string>
  dependencies?: unknown
  peerDependencies?: unknown
}
const entries = Object.keys(manifest.exports).filter((name) => name !== './package.json')
const specifiers = entries.map((name) => join('@postern/client', name))

const run = (command: string, args: string[], cwd: string): string => {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`)
  }
}

// `npm run test:sqlite` has built it. Packing must not rebuild it while other tests load it.
const newest = (path: string) =>
  Math.max(...readdirSync(join(packageFolder, path)).map((file) => statSync(join(packageFolder, path, file)).mtimeMs))
assert.ok(newest('dist') >= newest('src'), 'dist is older than src: npm run build --workspace client')

const [packed] = JSON.parse(
  run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], packageFolder),
) as { filename: string; files: { path: string }[] }[]
const tarball = join(folder, packed?.filename ?? '')

const project = join(folder, 'project')
mkdirSync(project)
writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}')
run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], project)

test('it holds the built code, its types, README and licence, and nothing else', () => {
  const files = packed?.files.map(({ path }) => path) ?? []
  for (const file of ['package.json', 'README.md', 'LICENSE']) assert.ok(files.includes(file), file)
  const rest = files.filter((file) => !/^(package\.json|README\.md|LICENSE|dist\/[\w-]+\.(js|d\.ts))$/.test(file))
  assert.deepEqual(rest, [])
  assert.equal(manifest.dependencies ?? manifest.peerDependencies, undefined)
})

test('publint has nothing to say', async () => {
  const bytes = readFileSync(tarball)
  const { messages } = await publint({ pack: { tarball: new Uint8Array(bytes).buffer }, strict: true })
  assert.deepEqual(messages, [])
})

const script = `
import { createServer } from 'node:http'
import { once } from 'node:events'
${specifiers.map((name, i) => `import * as entry${i} from '${name}'`).join('\n')}
const server = createServer((request, response) => {
  response.writeHead(202, { 'content-type': 'application/json', 'email-id': 'em_1' }).end('{"ok":true}')
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const baseUrl = 'http://127.0.0.1:' + server.address().port
const client = new entry0.Postern({ deliveryKey: 'pst_a', baseUrl })
const url = 'https://app.test/?token=a'
const sent = await client.send({ to: 'a@example.com', type: 'magic_link', url, expiresAt: new Date() })
console.log(process.versions.node.split('.')[0], sent.emailId, ${specifiers.map((_, i) => `Object.keys(entry${i}).length`).join(', ')})
const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
console.log('timers left:', timers.length)
server.close()
server.closeAllConnections()
`
writeFileSync(join(project, 'main.js'), script)

function assertRuns(node: string, major: string): void {
  const [line = '', timers] = run(node, ['main.js'], project).trim().split('\n')
  const [version, emailId, ...exported] = line.split(' ')
  assert.equal(timers, 'timers left: 0')
  assert.equal(version, major)
  assert.equal(emailId, 'em_1')
  assert.ok(exported.length === entries.length && exported.every((count) => Number(count) > 0))
}

test('installed in an empty project, it runs on this Node', () => {
  assertRuns(process.execPath, String(process.versions.node.split('.')[0]))
})

test('and on Node 20', { skip: lackingNode20 }, () => assertRuns(node20, '20'))

const typed = `
import { Postern, PosternError, type Email } from '@postern/client'
import { betterAuthEmail } from '@postern/client/better-auth'
import { confirm, posternProvider } from '@postern/client/auth-js'
import { posternEmail } from '@postern/client/convex'
import { ownAuthEmail, splitToken } from '@postern/client/own-auth'
import { sendEmailHook } from '@postern/client/supabase'
import { CapturingPostern, DevInbox } from '@postern/client/testing'

const postern = new Postern({ deliveryKey: 'pst_a', baseUrl: 'https://postern.test' })
const email: Email = { to: 'a@example.com', type: 'organisation_invite', organisationName: 'Blue', url: 'https://a.test/?token=a', expiresAt: new Date() }
type Sendable<T> = T extends Email ? true : false
type Invitation = { to: string, type: 'organisation_invite', url: string, expiresAt: Date }
const named: Sendable<Invitation & { organisationName: string }> = true
const nameless: Sendable<Invitation> = false
const page = 'https://a.test/'
export const handlers: ((request: Request) => Response | Promise<Response>)[] = [
  confirm,
  sendEmailHook({ postern, secret: 'v1,whsec_', pages: { signup: page } }),
]
// Inferred types: the compiler must be able to name them.
export const provider = betterAuthEmail({ postern })
export const authJs = posternProvider({ postern, confirmUrl: page })
export const convex = posternEmail({ postern, page })
export const own = ownAuthEmail({ postern })
export const trySend = (to: string) => postern.safeSend({ ...email, to })
export const all = [
  betterAuthEmail({ postern }), posternProvider({ postern, confirmUrl: page }), posternEmail({ postern, page }),
  ownAuthEmail({ postern }), splitToken('a'), new CapturingPostern(), new DevInbox(), email, named, nameless,
]
export async function send(): Promise<string | null> {
  const outcome = await postern.safeSend(email)
  if (!outcome.ok) throw outcome.error satisfies PosternError
  return outcome.emailId
}
`

// TypeScript 7 has no `node10`, which older projects still use.
const typescript5 = fileURLToPath(new URL('node_modules/typescript5/bin/tsc', import.meta.url))

for (const [moduleResolution, module, compiler] of [
  ['bundler', 'esnext', tsc],
  ['nodenext', 'nodenext', tsc],
  ['node16', 'node16', typescript5],
  ['node10', 'esnext', typescript5],
] as const) {
  test(`strict types hold in an empty project under ${moduleResolution}`, () => {
    writeFileSync(join(project, 'main.ts'), typed)
    const compilerOptions = {
      ...{ module, moduleResolution, target: 'es2022', lib: ['es2022', 'dom'], types: [] },
      ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
      ...{ skipLibCheck: false, declaration: true, outDir: 'built' },
    }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['main.ts'] }))
    run(compiler, ['--project', project], project)
    writeFileSync(join(project, 'main.ts'), `${typed}\nconst wrong: number = new Postern()\n`)
    assert.throws(() => run(compiler, ['--project', project], project), /TS2322/)
  })
}

test('the core is under 4 KB, minified and gzipped; an adapter brings no other with it', async () => {
  const sizeOf = async (code: string) => {
    const { outputFiles, metafile } = await build({
      ...{ stdin: { contents: code, resolveDir: project }, bundle: true, minify: true, write: false },
      ...{ format: 'esm', platform: 'neutral', logLevel: 'silent', metafile: true },
    })
    const files = Object.keys(metafile.inputs).map((path) => basename(path, '.js'))
    return { bytes: gzipSync(outputFiles[0]?.contents ?? '').length, files }
  }
  const core = await sizeOf(`export * from '@postern/client'`)
  assert.ok(core.bytes < 4096, `${core.bytes} bytes`)
  for (const entry of ['own-auth', 'better-auth', 'auth-js', 'convex', 'supabase']) {
    const { files } = await sizeOf(`export * from '@postern/client/${entry}'`)
    const foreign = files.filter((file) => entries.includes(`./${file}`) && file !== entry)
    assert.deepEqual(foreign, [], entry)
    assert.ok(!files.includes('postern') && files.includes(entry), 'nor the client, which the app makes itself')
  }
})
