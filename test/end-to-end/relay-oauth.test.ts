/** Relays that take access tokens: every grant at a real OAuth server, and servers that refuse. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newGrant } from '../../src/delivery/relay/oauth/grants.ts'
import { TokenFault } from '../../src/delivery/relay/oauth/token-source.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { OAuthClient } from '../../src/services/oauth-client.ts'
import { type Answering, sendJson, startApiServer } from '../support/api-server.ts'
import { lacking } from '../support/installed.ts'
import { ask, newManagementToken } from '../support/management.ts'
import { relayTo, startTestService, type TestService, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { applicationKey, secret, serviceAccount, startTokenServer } from '../support/token-server.ts'
import { eventually } from '../support/wait.ts'

const mailbox = 'no-reply@acme.test'

const grants: [client: string, grant: OAuthClient['grant']][] = [
  ['by-secret', { kind: 'secret', secret }],
  ['by-key', { kind: 'key', key: applicationKey, certificate: null }],
  [serviceAccount.email, { kind: 'service_account', account: serviceAccount, mailbox }],
]

const bySecret = (tokenUrl: string): OAuthClient => ({
  ...{ tokenUrl, clientId: 'c', scope: 'mail' },
  grant: { kind: 'secret', secret },
})

/** An SMTP server that takes the tokens that `isValid` knows, and counts sign-ins. */
async function startTakingTokens(t: Scope, isValid: (token: string) => Promise<boolean> | boolean) {
  const users: string[] = []
  const server = await startSmtpServer(t, {
    authOptional: false,
    allowInsecureAuth: true,
    authMethods: ['XOAUTH2'],
    async onAuth({ accessToken = '', username = '' }, _session, done) {
      users.push(username)
      if (await isValid(accessToken)) return done(null, { user: username })
      done(null, { data: { status: '401', schemes: 'bearer', scope: 'mail' } })
    },
  })
  return { ...server, users }
}

async function post(service: TestService, change: Record<string, unknown> = {}): Promise<EmailId> {
  const answer = await service.post(validBody(change, service.store.now()))
  assert.equal(answer.status, 202)
  return answer.headers.get('email-id') as EmailId
}

const reaches = (service: TestService, id: EmailId, state: string) =>
  eventually(async () => {
    const record = await service.store.findEmail(id)
    return record?.state === state ? record : null
  })

for (const [clientId, grant] of grants)
  test(`a token by the grant "${grant.kind}" opens the session of the mailbox`, async (t) => {
    const { delegated, isValid, tokenUrl } = await startTokenServer(t)
    const server = await startTakingTokens(t, isValid)
    const oauth = { tokenUrl, clientId, scope: 'mail', grant }
    const relays = [relayTo(server.port, { credentials: { user: mailbox, oauth } })]
    const service = await startTestService(t, { relays })
    await reaches(service, await post(service), 'delivered')
    assert.equal(server.received[0]?.user, mailbox)
    assert.deepEqual(delegated, grant.kind === 'service_account' ? [mailbox] : [])
  })

/** A token server that hands out `token-1`, `token-2` …, or what `answering` says. */
async function withTokens(t: Scope, answering?: Answering, connectionsMax = 5) {
  const tokens = await startApiServer(t, (asked, response, count) => {
    if (answering !== undefined) return answering(asked, response, count)
    sendJson(response, 200, { access_token: `token-${count}`, token_type: 'bearer', expires_in: 3600 })
  })
  const valid = new Set(['token-1', 'token-2'])
  const server = await startTakingTokens(t, (token) => valid.has(token))
  const oauth = bySecret(tokens.url)
  const relay = { ...relayTo(server.port, { credentials: { user: mailbox, oauth } }), connectionsMax }
  const service = await startTestService(t, { relays: [relay] })
  return { tokens, server, service, valid }
}

test('twenty sessions at once ask for one token', async (t) => {
  const { service, server, tokens } = await withTokens(t, undefined, 20)
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => post(service, { to: `r${n}@example.com` })))
  for (const id of ids) await reaches(service, id, 'delivered')
  assert.ok(server.users.length > 5, `${server.users.length} sessions`)
  assert.equal(tokens.asked.length, 1)
})

test('a token that is taken back is replaced at once, and the email goes by its first attempt', async (t) => {
  const { service, server, tokens, valid } = await withTokens(t)
  await reaches(service, await post(service), 'delivered')
  valid.delete('token-1')
  // The first session is busy with nothing: a second one is opened beside it.
  const ids = await Promise.all(Array.from({ length: 8 }, (_, n) => post(service, { to: `r${n}@example.com` })))
  for (const id of ids) {
    const { attempts, trail } = await reaches(service, id, 'delivered')
    assert.deepEqual([attempts, trail.length], [1, 1])
  }
  assert.ok(server.users.length > 2)
  assert.equal(tokens.asked.length, 2)
  assert.ok(!service.log.some((line) => line.includes('unavailable')))
})

test('a token that is never taken: the relay is down, with the server’s explanation and without the token', async (t) => {
  const { service, server, valid } = await withTokens(t)
  valid.clear()
  const id = await post(service)
  const line = await eventually(() => service.log.find((text) => text.includes('the relay is unavailable')))
  assert.match(line, /535 .*401/)
  assert.doesNotMatch(line, /token-\d/)
  // The attempt is counted by the claim, and taken back by its outcome.
  assert.equal((await reaches(service, id, 'deferred')).attempts, 0)
  assert.equal(server.received.length, 0)
})

test('a token server that is down leaves open sessions alone; without any token the mail waits', async (t) => {
  const state = { isUp: true }
  const { service } = await withTokens(t, (_asked, response) => {
    if (state.isUp) sendJson(response, 200, { access_token: 'token-1', token_type: 'bearer', expires_in: 3600 })
    else response.destroy()
  })
  await reaches(service, await post(service), 'delivered')
  state.isUp = false
  for (let n = 0; n < 3; n++) await reaches(service, await post(service, { to: `r${n}@example.com` }), 'delivered')
  const { service: other } = await withTokens(t, (_asked, response) => void response.destroy())
  const id = await post(other)
  const record = await eventually(async () => {
    const found = await other.store.findEmail(id)
    return (found?.trail.length ?? 0) > 0 ? found : null
  })
  assert.deepEqual([record.state, record.attempts], ['deferred', 0])
  assert.equal(record.trail[0]?.reply?.text, 'no token: the token server: it cannot be reached')
})

const html = '<html>Bad gateway</html>'
const answers: [name: string, answering: Answering, message: RegExp, lasting: boolean, waitMs: number | null][] = [
  [
    'a wrong secret',
    (_, r) => sendJson(r, 401, { error: 'invalid_client' }, { 'www-authenticate': 'Basic realm="x"' }),
    /^no token: invalid_client$/,
    true,
    null,
  ],
  [
    'an expired secret',
    (_, r) => sendJson(r, 401, { error: 'invalid_client', error_description: 'AADSTS7000222: expired' }),
    /AADSTS7000222/,
    true,
    null,
  ],
  ['no permission', (_, r) => sendJson(r, 400, { error: 'unauthorized_client' }), /unauthorized_client/, true, null],
  ['a grant that was withdrawn', (_, r) => sendJson(r, 400, { error: 'invalid_grant' }), /invalid_grant/, true, null],
  ['a scope of nobody', (_, r) => sendJson(r, 400, { error: 'invalid_scope' }), /invalid_scope/, true, null],
  ['consent denied', (_, r) => sendJson(r, 403, { error: 'access_denied' }), /access_denied/, true, null],
  [
    'too many requests',
    (_, r) => sendJson(r, 429, { error: 'slow_down' }, { 'retry-after': '20' }),
    /slow_down/,
    false,
    20_000,
  ],
  [
    'a pause',
    (_, r) => sendJson(r, 503, { error: 'temporarily_unavailable' }, { 'retry-after': '5' }),
    /answered 503/,
    false,
    5_000,
  ],
  ['an error of its own', (_, r) => sendJson(r, 500, { error: 'server_error' }), /answered 500/, false, null],
  ['HTML', (_, r) => void r.writeHead(502, { 'content-type': 'text/html' }).end(html), /answered 502/, false, null],
  [
    'a redirect',
    (_, r) => void r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    /not one of OAuth 2/,
    false,
    null,
  ],
  ['no token', (_, r) => sendJson(r, 200, { token_type: 'bearer' }), /not one of OAuth 2/, false, null],
  ['a long answer', (_, r) => void r.end('x'.repeat(1_000_000)), /cannot be reached/, false, null],
  ['silence', () => {}, /no answer within 1 s/, false, null],
  [
    'a head without an end',
    (_, r) => void r.writeHead(200, { 'content-type': 'application/json' }).write('{'),
    /no answer within 1 s/,
    false,
    null,
  ],
  [
    'a cut answer',
    (_, r) => void r.writeHead(200, { 'content-length': '90' }).write('{', () => r.destroy()),
    /cannot be reached/,
    false,
    null,
  ],
  [
    'its own secret',
    (a, r) => sendJson(r, 401, { error: 'invalid_client', error_description: a.body }),
    /<secret>/,
    true,
    null,
  ],
  [
    'another clock',
    (_, r) => sendJson(r, 400, { error: 'invalid_grant' }, { date: new Date(Date.now() - 61 * 60_000).toUTCString() }),
    /clock of this machine is 61 min ahead/,
    true,
    null,
  ],
]
for (const [name, answering, message, lasting, waitMs] of answers)
  test(`a token server that answers with ${name}`, async (t) => {
    const { url } = await startApiServer(t, answering)
    const fault = await newGrant(bySecret(url), { timeoutSeconds: 1 })().catch((error) => error)
    assert.ok(fault instanceof TokenFault, String(fault))
    assert.match(fault.message, message)
    assert.deepEqual([fault.lasting, fault.retryAfterMs], [lasting, waitMs])
    assert.doesNotMatch(fault.message, new RegExp(secret))
  })

test('a server that repeats an assertion does not get it into a record', async (t) => {
  const { url } = await startApiServer(t, (asked, response) => {
    const given = new URLSearchParams(asked.body).get('assertion')
    sendJson(response, 400, { error: 'invalid_grant', error_description: `refused: ${given}` })
  })
  const grant = { kind: 'service_account', account: serviceAccount, mailbox } as const
  const client = { tokenUrl: url, clientId: serviceAccount.email, scope: null, grant }
  await assert.rejects(newGrant(client)(), { message: 'no token: invalid_grant: refused: <secret>' })
})

test('a server that repeats the secret of a refresh token, or the token, gets neither into a record', async (t) => {
  const { url } = await startApiServer(t, (asked, response) => {
    const error_description = `refused: ${asked.body}`
    sendJson(response, 400, { error: 'invalid_grant', error_description })
  })
  const refreshToken = `refresh-${'r'.repeat(40)}`
  for (const own of [secret, null]) {
    const client = { ...bySecret(url), grant: { kind: 'refresh', refreshToken, secret: own } as const }
    const fault = await newGrant(client)().catch((error) => error)
    assert.ok(fault instanceof TokenFault, String(fault))
    assert.match(fault.message, /^no token: invalid_grant: refused: .*<secret>/)
    assert.doesNotMatch(fault.message, new RegExp(`${secret}|${refreshToken}`))
  }
})

test('a token that is not of this world lives a day at most', async (t) => {
  const { url } = await startApiServer(t, (_asked, response) =>
    sendJson(response, 200, { access_token: 'x', token_type: 'bearer', expires_in: 1e12 }),
  )
  assert.equal((await newGrant(bySecret(url))()).expiresInSeconds, 86_400)
})

test('a certificate that expires in nine days needs attention', {
  skip: lacking('openssl'),
}, async (t) => {
  const file = join(temporaryFolder(t), 'both.pem')
  const newCertificate = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=postern', '-days', '9']
  execFileSync('openssl', [...newCertificate, '-keyout', file, '-out', `${file}.cert`], { stdio: 'ignore' })
  const [key, certificate] = [file, `${file}.cert`].map((name) => readFileSync(name, 'utf8'))
  const grant = { kind: 'key', key: key ?? '', certificate: certificate ?? '' } as const
  const oauth = { ...bySecret('http://127.0.0.1:1/token'), grant }
  const service = await startTestService(t, {
    relays: [relayTo(1, { credentials: { user: mailbox, oauth } })],
  })
  const token = await newManagementToken(service)
  await eventually(async () => (await service.store.listNodes()).length > 0)
  const { body } = await ask(service, 'GET /v1/status', { token })
  const [{ kind, message, urgent }] = body.attention
  assert.match(message, /^The certificate that the relay 127\.0\.0\.1:1 needs for its tokens expires in 9 d: /)
  assert.deepEqual([kind, urgent], ['certificate_expires', false])
})

test('a relay that does not offer XOAUTH2 gets no token', async (t) => {
  const tokens = await startApiServer(t, (_asked, response) =>
    sendJson(response, 200, { access_token: 'token-of-ours', token_type: 'bearer', expires_in: 3600 }),
  )
  const server = await startScriptedServer(t, { ehlo: '250-scripted\r\n250 AUTH PLAIN LOGIN' })
  const credentials = { user: mailbox, oauth: bySecret(tokens.url) }
  const service = await startTestService(t, { relays: [relayTo(server.port, { credentials })] })
  await post(service)
  const line = await eventually(() => service.log.find((text) => text.includes('the relay is unavailable')))
  assert.match(line, /does not offer XOAUTH2/)
  assert.ok(server.transcript.every((command) => !command.startsWith('AUTH')))
})

test('no secret and no token is in the log, the database, the metrics or the status', async (t) => {
  const token = `canary-${'t'.repeat(60)}`
  const tokens = await startApiServer(t, (_asked, response) =>
    sendJson(response, 200, { access_token: token, token_type: 'bearer', expires_in: 3600 }),
  )
  const server = await startScriptedServer(t, {
    ehlo: '250-scripted\r\n250 AUTH XOAUTH2',
    auth: (socket) => void socket.write(`535 5.7.3 no ${token} by ${server.transcript.at(-1)}\r\n`),
  })
  const credentials = { user: mailbox, oauth: bySecret(tokens.url) }
  const service = await startTestService(t, { relays: [relayTo(server.port, { credentials })] })
  const id = await post(service)
  await eventually(() => service.log.some((text) => text.includes('the relay is unavailable')))
  await eventually(async () => ((await service.store.findEmail(id))?.trail.length ?? 0) > 0)
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  const everywhere = [
    ...service.log,
    metrics,
    JSON.stringify(await service.store.findEmail(id)),
    JSON.stringify(await service.store.listNodes()),
  ].join('\n')
  for (const hidden of [
    secret,
    token,
    Buffer.from(`user=${mailbox}\u0001auth=Bearer ${token}`).toString('base64').slice(8, 60),
  ])
    assert.ok(!everywhere.includes(hidden))
})
