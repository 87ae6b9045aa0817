/** Mail APIs, webhooks and `fetch` through a real proxy, whose address the environment has. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { newAgent, post } from '../../src/delivery/relay/http/post.ts'
import { postWebhook } from '../../src/delivery/webhooks/post-webhook.ts'
import { useProxies } from '../../src/services/proxies.ts'
import { newAsk } from '../../src/web/reports/ask-service.ts'
import { postern, serveEnvironment } from '../support/cli.ts'
import { startAddressServer } from '../support/dns-server.ts'

const readTls = (name: string) => readFileSync(new URL(`../support/tls/${name}.pem`, import.meta.url), 'utf8')
/** A server with a certificate for this name, which nothing here looks up. */
const [host, cert, key] = ['sns.eu-west-1.amazonaws.com', readTls('sns.cert'), readTls('sns.key')]
const asked: string[] = []
const target = https.createServer({ cert, key }, ({ headers, url }, response) => {
  asked.push(`${headers.host}${url}`)
  response.end('{"ErrorCode":0,"MessageID":"m1"}')
})

type Mode = 'tunnel' | 'refuse' | 'hang'
const state = { mode: 'tunnel' as Mode }
const tunnels: string[] = []
const sockets = new Set<Socket>()
const proxy = http.createServer()
proxy.on('connect', ({ url = '' }, client: Socket) => {
  tunnels.push(url)
  sockets.add(client)
  if (state.mode === 'hang') return
  if (state.mode === 'refuse') return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
  const server = connect((target.address() as AddressInfo).port, '127.0.0.1', () => {
    client.write('HTTP/1.1 200 OK\r\n\r\n')
    server.pipe(client).pipe(server)
  })
  for (const socket of [client, server]) socket.on('error', () => {})
  client.on('close', () => server.destroy())
})
for (const server of [target, proxy]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
after(() => {
  for (const socket of sockets) socket.destroy()
  target.close().closeAllConnections()
  proxy.close()
})

const proxyUrl = `http://user:proxy-secret@127.0.0.1:${(proxy.address() as AddressInfo).port}`
useProxies({ HTTPS_PROXY: proxyUrl })

const body = Buffer.from('{}')
const never = new AbortController().signal

const callApi = async (connectMs = 5000) => {
  const url = new URL(`https://${host}/email`)
  const agent = newAgent(url, { connectionsMax: 1, idleMs: 1000, ca: cert })
  const options = { connecting: AbortSignal.timeout(connectMs), stopped: never, mayHandOver: () => true }
  return post(agent, { url, headers: {}, body }, options).finally(() => agent.destroy())
}
const callWebhook = async (dnsServers: string[], timeoutMs = 5000) =>
  postWebhook(
    { url: new URL(`https://${host}/webhook`), headers: {}, body },
    { allowsPrivate: false, dnsServers, ca: cert, stopped: never, timeoutMs },
  )

test('a mail API is asked through the proxy, and its name is left to the proxy', async () => {
  const exchange = await callApi()
  assert.equal(exchange.kind, 'answered')
  assert.deepEqual([tunnels.splice(0), asked.splice(0)], [[`${host}:443`], [`${host}/email`]])
})

test('a proxy that refuses or does not answer is a relay that is down; the password is not repeated', async () => {
  state.mode = 'refuse'
  const refused = await callApi()
  assert.ok(refused.kind === 'unconnected')
  assert.match(refused.why, /407/)
  assert.doesNotMatch(refused.why, /proxy-secret/)
  state.mode = 'hang'
  assert.deepEqual(await callApi(200), { kind: 'unconnected', why: 'no connection in time', isCertificate: false })
  assert.equal((await callWebhook(['127.0.0.1:1'], 200)).isTaken, false)
  state.mode = 'tunnel'
  tunnels.splice(0)
})

test('a webhook goes to an address that was checked here, under its own name', async (t) => {
  const dns = await startAddressServer(t, '8.8.8.8')
  assert.deepEqual(await callWebhook([dns]), { result: '200', isTaken: true, response: null })
  assert.deepEqual([tunnels.splice(0), asked.splice(0)], [['8.8.8.8:443'], [`${host}/webhook`]])
  state.mode = 'hang'
  assert.deepEqual(await callWebhook([dns], 200), { result: 'no answer within 0.2 s', isTaken: false, response: null })
  state.mode = 'tunnel'
  tunnels.splice(0)
})

test('a webhook reaches no private address through the proxy', async (t) => {
  for (const address of ['10.0.0.1', '127.0.0.1', '169.254.169.254']) {
    const dns = await startAddressServer(t, address)
    const { result } = await callWebhook([dns])
    assert.equal(result, 'its address is not on the public Internet', address)
  }
  const url = new URL('https://192.168.0.1/webhook')
  const options = { allowsPrivate: false, dnsServers: null, stopped: never }
  assert.equal((await postWebhook({ url, headers: {}, body }, options)).isTaken, false)
  assert.deepEqual(tunnels, [])
})

test('certificates of SNS, and what uses fetch, go through the proxy too', async () => {
  // Its certificate authority is not trusted here, so there is no answer.
  assert.equal(await newAsk()(`https://${host}/x.pem`), null)
  await fetch(`https://${host}/token`).catch(() => {})
  assert.deepEqual(tunnels.splice(0), [`${host}:443`, `${host}:443`])
})

test('doctor names the proxy, and sends its check through it', async (t) => {
  const env = {
    ...(await serveEnvironment(t)),
    HTTPS_PROXY: proxyUrl,
    POSTERN_SMTP_URL: 'resend://re_key_12345678@api.resend.com',
  }
  const { out } = await postern(env, ['doctor'])
  assert.match(
    out,
    /ok +proxy: mail APIs, token servers, .* use the proxy HTTPS_PROXY 127\.0\.0\.1:\d+ .*SMTP uses none/,
  )
  assert.ok(tunnels.includes('api.resend.com:443'), tunnels.join())
  assert.doesNotMatch(out, /proxy-secret/)
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const wrong = spawnSync(process.execPath, [main, 'doctor'], { env: { ...env, HTTPS_PROXY: 'socks5://p:1' } })
  assert.match(String(wrong.stderr), /^postern: HTTPS_PROXY must be the URL of a proxy, such as http:/)
  assert.equal(wrong.status, 1)
})
