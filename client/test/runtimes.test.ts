/**
 * The built package on other runtimes, against a real server: a send that is retried after a 503, a server
 * that is not there, and a call that is aborted.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cpSync, globSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { lacking, toolPath } from '../../test/support/installed.ts'
import { lackingNode20, node20 } from '../../test/support/node20.ts'
import { freePort } from '../../test/support/ports.ts'
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts'
import { eventually } from '../../test/support/wait.ts'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))
const entries = ['postern', 'own-auth', 'better-auth', 'auth-js', 'convex', 'supabase', 'testing']

/** Answers the first request of each email with 503, and the next with 202. */
const seen = new Map<string, number>()
const server = createServer((request, response) => {
  const key = String(request.headers['idempotency-key'])
  const attempts = (seen.get(key) ?? 0) + 1
  seen.set(key, attempts)
  request.resume().on('end', () => {
    if (attempts === 1) response.writeHead(503, { 'retry-after': '0' }).end('{}')
    else response.writeHead(202, { 'content-type': 'application/json', 'email-id': 'em_1' }).end('{"ok":true}')
  })
})
before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
after(() => new Promise((resolve) => server.close(resolve)))

/** A module whose `run` returns what the client did. `from` is where it finds the package. */
const moduleText = (from: string): string => `
${entries.map((name, n) => `import * as entry${n} from '${from}${name}.js'`).join('\n')}
const email = { to: 'a@example.com', type: 'magic_link', url: 'https://app.test/?token=a', expiresAt: new Date(Date.now() + 60000) }
export async function run(baseUrl) {
  const client = new entry0.Postern({ deliveryKey: 'pst_a', baseUrl })
  const sent = await client.send(email)
  const gone = new entry0.Postern({ deliveryKey: 'pst_a', baseUrl: 'http://127.0.0.1:1', maxRetries: 0 })
  const nobody = await gone.safeSend(email)
  const aborted = await client.safeSend(email, { signal: AbortSignal.abort() })
  const exported = [${entries.map((_, n) => `Object.keys(entry${n}).length`).join(', ')}]
  return [sent.emailId, nobody.error.code, aborted.error.code, exported.every((count) => count > 0)]
}
`
const expected = ['em_1', 'network_error', 'aborted', true]
const folder = temporaryFolder({ after })
const baseUrl = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function assertRuns(command: string, args: readonly string[] = []): Promise<void> {
  writeFileSync(join(folder, 'client.mjs'), moduleText(dist))
  const main = `import { run } from './client.mjs'\nconsole.log(JSON.stringify(await run('${baseUrl()}')))\n`
  writeFileSync(join(folder, 'main.mjs'), main)
  const { stdout } = await promisify(execFile)(command, [...args, join(folder, 'main.mjs')], {
    timeout: 60_000,
  })
  assert.deepEqual(JSON.parse(stdout), expected)
}

test('on this Node', () => assertRuns(process.execPath))

test('on Node 20', { skip: lackingNode20 }, () => assertRuns(node20))

test('on Bun', { skip: lacking('bun') }, () => assertRuns(toolPath('bun')))

test('on Deno, which may open one host and read two variables', { skip: lacking('deno') }, () =>
  assertRuns(toolPath('deno'), [
    'run',
    '--no-config',
    '--allow-net=127.0.0.1',
    '--allow-env=POSTERN_DELIVERY_KEY,POSTERN_BASE_URL',
  ]),
)

for (const flags of [[], ['nodejs_compat']]) {
  const how = flags.length === 0 ? 'without Node’s modules' : 'with nodejs_compat'
  test(`on workerd, ${how}`, { skip: lacking('workerd') }, async (t) => {
    const port = await startWorkerd(t, flags)
    const answer = await eventually(() => fetch(`http://127.0.0.1:${port}/`).catch(() => null))
    assert.deepEqual(await answer.json(), expected)
  })
}

/** A worker that answers each request with what the client did. Returns its port. */
async function startWorkerd(t: TestContext, flags: readonly string[]): Promise<number> {
  const port = await freePort()
  const place = temporaryFolder(t)
  cpSync(dist, join(place, 'dist'), { recursive: true })
  writeFileSync(join(place, 'client.mjs'), moduleText('./dist/'))
  writeFileSync(
    join(place, 'main.mjs'),
    `import { run } from './client.mjs'
     export default { fetch: async () => Response.json(await run('${baseUrl()}')) }`,
  )
  const files = ['main.mjs', 'client.mjs', ...globSync('dist/*.js', { cwd: place })]
  const modules = files.map((file) => `(name = "${file}", esModule = embed "${file}")`)
  writeFileSync(
    join(place, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [${modules}], compatibilityDate = "2026-01-01",
      compatibilityFlags = ${JSON.stringify(flags)})),
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
`,
  )
  const child = spawn(toolPath('workerd'), ['serve', join(place, 'config.capnp')], { stdio: 'inherit' })
  atEnd(t, () => child.kill('SIGKILL'))
  return port
}
