/**
 * The files of deploy/proxy/ in their proxies: nginx, Caddy and HAProxy. Only the ports, and the places of
 * certificates and logs, differ from the files.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import PostalMime from 'postal-mime'
import { openBrowser } from '../support/browser.ts'
import { cookieOf, signIn } from '../support/console.ts'
import { pressedHeaders } from '../support/hosted-links.ts'
import { lacking, type Tool, toolPath } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/ports.ts'
import { newSender, relayTo, startTestService, testSettings, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const names = { api: 'mail-api.example.com', links: 'links.example.com', console: 'postern.example.com' } as const

/** Where a proxy finds what differs from its file. */
type Place = { readonly folder: string; readonly port: number; readonly log: string }

/** The arguments that start a proxy with its configuration, in the foreground. */
type Start = (configuration: string, place: Place) => readonly string[]

const proxies: Readonly<Record<'nginx' | 'caddy' | 'haproxy', { readonly file: string; readonly start: Start }>> = {
  nginx: {
    file: 'nginx.conf',
    start: (configuration, { folder, port, log }) => {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      )
      const main = `daemon off; pid ${folder}/pid; error_log ${log} info; events {} http { access_log ${log};
        ${temporary.join(' ')} include ${folder}/postern.conf; }`
      const own = configuration
        .replaceAll('listen 443', `listen 127.0.0.1:${port}`)
        .replaceAll('/etc/ssl/postern/fullchain.pem', `${folder}/certificate.pem`)
        .replaceAll('/etc/ssl/postern/key.pem', `${folder}/key.pem`)
      writeFileSync(join(folder, 'postern.conf'), own)
      writeFileSync(join(folder, 'nginx.conf'), main)
      return ['-c', join(folder, 'nginx.conf'), '-p', folder]
    },
  },
  caddy: {
    file: 'Caddyfile',
    start: (configuration, { folder, port }) => {
      const options = [
        ...['admin off', 'grace_period 1s', 'auto_https disable_redirects', 'skip_install_trust', 'local_certs'],
        ...[`https_port ${port}`, 'default_bind 127.0.0.1', `storage file_system ${folder}`],
      ]
      // The file has options of its own.
      const own = configuration.replace(/^\{\n/m, (begin) => `${begin}${options.join('\n')}\n`)
      writeFileSync(join(folder, 'Caddyfile'), own)
      return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
    },
  },
  haproxy: {
    file: 'haproxy.cfg',
    start: (configuration, { folder, port }) => {
      const own = configuration
        .replace('bind :443', `bind 127.0.0.1:${port}`)
        .replace('/etc/ssl/postern/postern.pem', `${folder}/both.pem`)
      writeFileSync(join(folder, 'haproxy.cfg'), own)
      return ['-db', '-f', join(folder, 'haproxy.cfg')]
    },
  },
}

/** Whether TLS begins for each name. */
async function canConnect(port: number): Promise<boolean> {
  const tries = Object.values(names).map(
    (servername) =>
      new Promise<boolean>((resolve) => {
        const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false }, () => resolve(true))
        socket.on('error', () => resolve(false)).on('secureConnect', () => socket.destroy())
      }),
  )
  return !(await Promise.all(tries)).includes(false)
}

async function startProxyServer(scope: Scope, tool: keyof typeof proxies, ports: Readonly<Record<string, string>>) {
  const folder = temporaryFolder(scope)
  chmodSync(folder, 0o755)
  const tls = (name: string) => readFileSync(join(root, `test/support/tls/localhost.${name}.pem`), 'utf8')
  writeFileSync(join(folder, 'certificate.pem'), tls('cert'))
  writeFileSync(join(folder, 'key.pem'), tls('key'))
  writeFileSync(join(folder, 'both.pem'), tls('cert') + tls('key'))
  const { file, start } = proxies[tool]
  let configuration = readFileSync(join(root, 'deploy/proxy', file), 'utf8')
  for (const [usual, actual] of Object.entries(ports)) {
    assert.ok(configuration.includes(`127.0.0.1:${usual}`), `${file} leads to port ${usual}`)
    configuration = configuration.replaceAll(`127.0.0.1:${usual}`, `127.0.0.1:${actual}`)
  }
  const place = { folder, port: await freePort(), log: join(folder, 'log') }
  const child = spawn(toolPath(tool), start(configuration, place), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: folder },
  })
  const printed: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => printed.push(String(chunk)))
  const exited = new Promise((resolve) => child.once('exit', resolve))
  atEnd(scope, async () => {
    child.kill('SIGTERM')
    await exited
  })
  // Caddy listens before it has made its certificates.
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(printed.join(''))
    return canConnect(place.port)
  })
  const readLog = () => printed.join('') + (existsSync(place.log) ? readFileSync(place.log, 'utf8') : '')
  return { port: place.port, readLog }
}

type Asked = {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly from?: string
}

const portOf = (url = ''): string => new URL(url).port

for (const tool of Object.keys(proxies) as (keyof typeof proxies & Tool)[])
  test(`behind ${tool}: the API, hosted links and the console`, { skip: lacking(tool) }, async (t) => {
    const relay = await startSmtpServer(t)
    const service = await startTestService(t, {
      isDev: false,
      relays: [relayTo(relay.port)],
      linksBaseUrl: `https://${names.links}`,
      settings: { hostedLinks: 'always' },
      consoleUrl: `https://${names.console}`,
      consoleIsLocal: false,
    })
    const { api, links, console: operators } = service.urls
    const { port, readLog } = await startProxyServer(t, tool, {
      4020: portOf(api),
      4021: portOf(links),
      4022: portOf(operators),
    })
    const ask = (name: keyof typeof names, path: string, { method = 'GET', headers = {}, body, from }: Asked = {}) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const host = names[name]
        const options = { host: '127.0.0.1', port, path, method, servername: host, headers: { host, ...headers } }
        const more = { rejectUnauthorized: false, agent: false, ...(from !== undefined && { localAddress: from }) }
        request({ ...options, ...more }, resolve)
          .on('error', reject)
          .end(body)
      })

    // The API: an email is accepted and sent, and the refusal of a body that is too large is Postern's own.
    const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' }
    const accepted = await ask('api', '/v1/email', { method: 'POST', headers, body: JSON.stringify(validBody()) })
    assert.equal(accepted.statusCode, 202)
    assert.match(String(accepted.headers['email-id']), /^em_/)
    const large = JSON.stringify(validBody({ more: 'x'.repeat(17_000) }))
    const refused = await ask('api', '/v1/email', { method: 'POST', headers, body: large })
    assert.match(await text(refused), /"body_too_large"/)

    // A key may be used from its own network alone, whatever a client claims to be forwarded for.
    const { key, keyId } = await newSender(service, 'office')
    await service.store.updateKey(keyId, { networks: ['127.0.0.7'] }, operator)
    for (const [from, status] of [
      ['127.0.0.7', 202],
      ['127.0.0.8', 401],
    ] as const) {
      const claims = { ...headers, authorization: `Bearer ${key}`, 'x-forwarded-for': '127.0.0.7' }
      const order = { method: 'POST', headers: claims, body: JSON.stringify(validBody()), from }
      assert.equal((await ask('api', '/v1/email', order)).statusCode, status, `from ${from}`)
    }

    // A hosted link, of the longest: shown, opened by its button, and in no log.
    const url = `https://app.acme.test/auth?token=${'t'.repeat(5000)}`
    const sent = await ask('api', '/v1/email', { method: 'POST', headers, body: JSON.stringify(validBody({ url })) })
    assert.equal(sent.statusCode, 202, await text(sent))
    const id = String(sent.headers['email-id'])
    const message = await eventually(() => relay.received.find(({ raw }) => raw.includes(id)))
    const { text: words = '' } = await PostalMime.parse(message.raw)
    const link = new URL(/https:\/\/links\.example\.com\/\S+/.exec(words)?.[0] ?? '')
    const page = await ask('links', link.pathname)
    assert.equal(page.statusCode, 200)
    assert.match(await text(page), /<form method="post"/)
    const pressed = { ...pressedHeaders, 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }
    const opened = await ask('links', link.pathname, { method: 'POST', headers: pressed })
    assert.equal(opened.headers.location, url)

    // The console: under its own name, live, and for operators alone.
    const cookie = `__Host-${cookieOf(await signIn(service))}`
    const home = await ask('console', '/', { headers: { cookie, accept: 'text/html' } })
    assert.equal(home.statusCode, 200)
    const live = await ask('console', '/live?topic=service', { headers: { cookie, accept: 'text/event-stream' } })
    assert.equal(live.statusCode, 200)
    await new Promise((resolve) => live.once('data', resolve))
    live.destroy()
    assert.equal((await ask('console', '/', { headers: { cookie }, from: '127.0.0.2' })).statusCode, 403)

    // While Postern is stopped, proxies log the requests that fail.
    await service.stop()
    assert.ok([502, 503].includes((await ask('links', link.pathname)).statusCode ?? 0))
    const log = readLog()
    if (tool === 'nginx') assert.match(log, /POST \/v1\/email/)
    assert.ok(!log.includes(link.pathname.slice(0, 60)), log)
  })

/** Link domains: nginx and HAProxy have a list of them, and Caddy asks Postern. */
const linkDomains = {
  nginx: ['links.acme.example', 'links.globex.example'],
  haproxy: ['links.acme.example', 'links.globex.example'],
  caddy: ['links.acme.example', 'go.initech.example'],
} as const

for (const tool of ['nginx', 'haproxy', 'caddy'] as const)
  test(`behind ${tool}, in a browser: links of three hosts open at their own`, {
    skip: lacking(tool) || lacking('chromium'),
  }, async (t) => {
    const service = await startTestService(t, {
      linksBaseUrl: `https://${names.links}`,
      settings: { hostedLinks: 'always', linkDestinations: {} },
    })
    const isCaddy = tool === 'caddy'
    const keys = [service.key]
    for (const [n, linkDomain] of linkDomains[tool].entries()) {
      const settings = { ...testSettings, hostedLinks: 'always' as const, linkDomain, useLinkDomain: true }
      keys.push((await newSender(service, `sender-${n}`, settings)).key)
    }
    const { links, ops } = service.urls
    const usual = { 4021: portOf(links), ...(isCaddy && { 4023: portOf(ops) }) }
    const { port } = await startProxyServer(t, tool, usual)
    const browser = await openBrowser(t, [`--host-resolver-rules=MAP * 127.0.0.1:${port}`])
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
    const urls: URL[] = []
    for (const [n, key] of keys.entries()) {
      const to = `host${n}@example.com`
      await service.post(validBody({ to }), { authorization: `Bearer ${key}` })
      const email = await eventually(async () => {
        const found = await fetch(`${service.urls.inbox}/api/inbox/latest?to=${to}`)
        return found.ok ? ((await found.json()) as { url: string }) : null
      })
      urls.push(new URL(email.url))
    }
    const hosts = [names.links, ...linkDomains[tool]]
    assert.deepEqual(
      urls.map(({ host }) => host),
      hosts,
    )
    for (const { host, pathname } of urls)
      for (const at of hosts) {
        const answer = await page.goto(`https://${at}${pathname}`)
        assert.equal(answer?.status(), at === host ? 200 : 404, `${pathname} of ${host} at ${at}`)
        const hasButton = (await page.locator('button').count()) === 1
        assert.equal(hasButton, at === host)
      }
    if (isCaddy) await assert.rejects(page.goto('https://nobody.example/'), /ERR_SSL/, 'no app has it')
  })
