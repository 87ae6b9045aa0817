/** `postern domain check`: whether the link domain of an app reaches this service from the Internet. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { posternJson, runProcess, serveAcme, type Variables } from '../support/cli.ts'
import { startAddressServer } from '../support/dns-server.ts'
import { freePort } from '../support/ports.ts'

const tls = (name: string) => fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url))
/** The name of a certificate that only this test trusts. */
const domain = 'sns.eu-west-1.amazonaws.com'
const linksPort = await freePort()

/** The proxy in front of the links listener: it forwards the host, changes it, or answers by itself. */
type Mode = 'forwards' | 'changes the host' | 'answers 200' | 'redirects'
const state = { mode: 'forwards' as Mode, cert: 'sns' }
const front = https.createServer((asked, answer) => {
  if (state.mode === 'answers 200') return void answer.end('welcome')
  if (state.mode === 'redirects') return void answer.writeHead(302, { location: 'https://acme.test/' }).end()
  const host = state.mode === 'forwards' ? asked.headers.host : 'links.acme.test'
  const options = { port: linksPort, path: asked.url, headers: { host } }
  http.get(options, (got) => got.pipe(answer.writeHead(got.statusCode ?? 0))).on('error', () => answer.destroy())
})
/** It stands between the command and the Internet: whatever is asked for, the server above answers. */
const tunnel = http.createServer()
const sockets = new Set<Socket>()
tunnel.on('connect', (_request, client: Socket) => {
  sockets.add(client)
  const server = connect((front.address() as AddressInfo).port, '127.0.0.1', () => {
    client.write('HTTP/1.1 200 OK\r\n\r\n')
    server.pipe(client).pipe(server)
  })
  for (const socket of [client, server]) socket.on('error', () => {})
})
for (const server of [front, tunnel]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
after(() => {
  for (const socket of sockets) socket.destroy()
  front.close().closeAllConnections()
  tunnel.close()
})

const { env } = await serveAcme(
  { after },
  {
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_LINKS_LISTEN: `127.0.0.1:${linksPort}`,
    POSTERN_LINKS_BASE_URL: 'https://links.acme.test',
  },
)
await posternJson(env, ['app', 'update', 'acme', '--link-domain', domain])
const internet: Variables = {
  ...env,
  POSTERN_DNS_SERVERS: await startAddressServer({ after }, '8.8.8.8'),
  HTTPS_PROXY: `http://127.0.0.1:${(tunnel.address() as AddressInfo).port}`,
  NODE_EXTRA_CA_CERTS: tls('sns.cert'),
}

async function check(change: Partial<typeof state> = {}, more: Variables = {}): Promise<string> {
  Object.assign(state, { mode: 'forwards', cert: 'sns' }, change)
  front.setSecureContext({ cert: readFileSync(tls(`${state.cert}.cert`)), key: readFileSync(tls(`${state.cert}.key`)) })
  const { out } = await runProcess({ ...internet, ...more }, ['domain', 'check', 'acme'])
  return out.split('\n').find((line) => line.includes('link domain')) ?? out
}

test('a link domain that is not ready says what to do', async () => {
  assert.match(await check({ mode: 'changes the host' }), /^FAIL .* The answer was 404\. Forward .* Host header/)
  assert.match(await check({ mode: 'redirects' }), /^FAIL .* The answer was 302\./)
  assert.match(await check({ mode: 'answers 200' }), /^FAIL .* Another server answered, or a Postern with a different/)
  assert.match(await check({ cert: 'localhost' }), /^FAIL .* No answer over HTTPS: its certificate is not valid/)
  const inside = { POSTERN_DNS_SERVERS: await startAddressServer({ after }, '10.0.0.1') }
  assert.match(await check({}, inside), /^FAIL .*: its address is not on the public Internet\./)
})

test('one that reaches this service is put into use, and checked again', async () => {
  const line = await check()
  assert.match(line, /^warn +link domain sns\.eu-west-1\.amazonaws\.com: It reaches this service\./)
  const [, advice = ''] = /"postern (.*)"/.exec(line) ?? []
  await posternJson(env, advice.split(' '))
  assert.match(await check(), /^ok +link domain sns\.eu-west-1\.amazonaws\.com: It reaches this service\.$/)
})

test('doctor checks the domains in use', async () => {
  const doctor = async () => (await runProcess(internet, ['doctor'])).out
  Object.assign(state, { mode: 'forwards' })
  assert.match(await doctor(), /^ok +link domain sns\.eu-west-1\.amazonaws\.com: reaches this service$/m)
  Object.assign(state, { mode: 'answers 200' })
  assert.match(await doctor(), /^FAIL +link domain sns\.eu-west-1\.amazonaws\.com: Another server answered/m)
  await posternJson(env, ['app', 'update', 'acme', '--no-use-link-domain'])
  assert.doesNotMatch(await doctor(), /link domain/)
})

test('an app without a link domain has no such line', async () => {
  await posternJson(env, ['app', 'update', 'acme', '--link-domain', '', '--no-use-link-domain'])
  assert.doesNotMatch(await check(), /link domain/)
})
