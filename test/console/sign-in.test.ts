/**
 * Signing in with software that is not ours: passkeys by Chromium's virtual authenticator, OpenID Connect by
 * a real provider library.
 */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { passkeysMax } from '../../src/domain/bounds.ts'
import type { PersonId } from '../../src/domain/id.ts'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, cookieOf, newCode, newVisitor, signIn, useSession } from '../support/console.ts'
import { lacking } from '../support/installed.ts'
import { client, type Forgery, follow, startOpenIdProvider } from '../support/openid-provider.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/ports.ts'
import { newSender, startTestService } from '../support/service.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')
const roles = new Set(['api', 'console'] as const)

/** A page with an authenticator of its own, as a phone or laptop has one. */
async function newPage(scope: Scope) {
  const context = await (await openBrowser(scope)).newContext()
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
  } as const
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', { options })
  const verify = (isUserVerified: boolean) =>
    session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
  return { context, page, faults, verify }
}

test('a passkey is added after signing in with a link, signs in from then on, and can be removed', {
  skip,
}, async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const at = consoleAt(service)
  const { context, page, faults } = await newPage(t)
  await page.goto(`${at}/sign-in#${await newCode(service)}`)
  assert.match(await page.inputValue('#code'), /^psl_/)
  assert.equal(new URL(page.url()).hash, '', 'the code leaves the address')
  await page.press('main button', 'Enter')
  await page.waitForURL(`${at}/`)
  await page.goto(`${at}/account`)
  await page.fill('#passkey-name', 'laptop')
  await page.click('text=Add a passkey')
  await page.waitForURL(/\/account\?done=passkey_added/)
  assert.match(String(await page.textContent('main')), /laptop/)
  await page.click('.menu summary')
  await page.click('text=Sign out')
  await page.waitForURL(`${at}/sign-in`)
  await eventually(async () => {
    await page.goto(`${at}/emails?state=failed`)
    return page.isVisible('text=Use a passkey')
  })
  await page.click('text=Use a passkey')
  await page.waitForURL(`${at}/emails?state=failed`)
  const [session] = await service.store.listSessions()
  assert.equal(session?.method, 'passkey')
  await page.goto(`${at}/account`)
  await page.click('text=Remove…')
  assert.match(String(await page.textContent('#confirm')), /It is your last one/)
  await page.getByRole('button', { name: 'Remove the passkey' }).click()
  await page.waitForURL(/done=passkey_removed/)
  await context.clearCookies()
  await page.goto(`${at}/sign-in`)
  await eventually(async () => {
    await page.reload()
    return !(await page.isVisible('text=Use a passkey')) // there is none left
  })
  assert.deepEqual(faults, [])
})

test('one passkey more than a person may have is refused, in words', { skip }, async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const at = consoleAt(service)
  const { context, page } = await newPage(t)
  const signed = await signIn(service)
  const person = signed.person as PersonId
  for (let n = 0; n < passkeysMax; n++) {
    const id = Buffer.from(`passkey ${n}`).toString('base64url')
    const passkey = { id, person, publicKey: 'k', counter: 0, name: `laptop ${n}` }
    assert.ok(await service.store.addPasskey(passkey, operator))
  }
  await useSession(context, at, signed)
  await page.goto(`${at}/account`)
  await page.fill('#passkey-name', 'one more')
  await page.click('text=Add a passkey')
  await page.waitForSelector('#new-passkey .fault:not(:empty)')
  assert.match(String(await page.textContent('#new-passkey .fault')), /you have \d+ passkeys/)
  assert.equal((await service.store.listPasskeys(person)).length, passkeysMax)
})

test('a passkey is refused without verification of its user, from a replayed answer, and of a disabled person', {
  skip,
}, async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const at = consoleAt(service)
  const { context, page, verify } = await newPage(t)
  const signed = await signIn(service)
  await useSession(context, at, signed)
  await page.goto(`${at}/account`)
  await page.click('text=Add a passkey')
  await page.waitForURL(/done=passkey_added/)
  await context.clearCookies()
  await page.goto(`${at}/sign-in`)
  await verify(false)
  await page.click('text=Use a passkey')
  await page.waitForSelector('#passkey .fault:not(:empty)')
  await verify(true)
  const answers: string[] = []
  page.on('request', (request) => request.url().includes('/sign-in/passkey?') && answers.push(request.postData() ?? ''))
  await page.click('text=Use a passkey')
  await page.waitForURL(`${at}/`)
  const replay = await fetch(`${service.urls.console}/sign-in/passkey`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    body: answers.at(-1) ?? '',
  })
  assert.equal(replay.status, 403)
  for (const body of ['', '{}', '[]', '{"id":1}', '{"id":"x","response":{}}'])
    assert.equal((await newVisitor(service, null).post('/sign-in/passkey', { body })).status, 403, body)
  await service.store.updatePerson(
    signed.person as Parameters<typeof service.store.updatePerson>[0],
    { disabled: true },
    operator,
  )
  await context.clearCookies()
  await page.goto(`${at}/sign-in`)
  await page.click('text=Use a passkey')
  await page.waitForSelector('#passkey .fault:not(:empty)')
  assert.match(String(await page.textContent('#passkey .fault')), /unknown here/)
  assert.equal((await service.store.listSessions()).length, 0)
})

/** CBOR of texts, bytes, lists and maps: an attestation. */
function cbor(value: unknown): Buffer {
  const head = (kind: number, size: number) =>
    size < 24 ? Buffer.from([(kind << 5) | size]) : Buffer.from([(kind << 5) | 24, size])
  if (typeof value === 'string') return Buffer.concat([head(3, value.length), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  const entries = Object.entries(value as object)
  return Buffer.concat([head(5, entries.length), ...entries.flatMap(([name, each]) => [cbor(name), cbor(each)])])
}

test('an attestation with certificates is refused before the library looks at it, and fetches what they name', async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const signed = await signIn(service)
  const post = (path: string, body: unknown) =>
    fetch(`${service.urls.console}${path}`, {
      method: 'POST',
      headers: {
        cookie: cookieOf(signed),
        'content-type': 'application/json',
        'sec-fetch-site': 'same-origin',
      },
      body: JSON.stringify(body),
    })
  const encode = (value: Uint8Array | string) => Buffer.from(value).toString('base64url')
  for (const [fmt, attStmt] of [
    ['android-key', { x5c: [Buffer.from('certificate')] }],
    ['packed', { x5c: [Buffer.from('certificate')] }],
    ['fido-u2f', {}],
  ] as const) {
    const { challenge } = (await (await post('/account/passkeys/options', {})).json()) as {
      challenge: string
    }
    const data = { type: 'webauthn.create', challenge, origin: service.urls.console }
    const attestation = cbor({ fmt, attStmt, authData: Buffer.alloc(37) })
    const response = { clientDataJSON: encode(JSON.stringify(data)), attestationObject: encode(attestation) }
    const id = encode('credential')
    const credential = { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response }
    assert.equal((await post('/account/passkeys', { name: 'x', response: credential })).status, 403, fmt)
    const [session] = await service.store.listSessions()
    const digest = hash('sha256', `${session?.id} ${challenge}`, 'base64url')
    assert.equal(await service.store.takeNonce(digest), true, `${fmt}: the library has not seen it`)
  }
})

test('a passkey has a name that can be seen', async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const headers = { cookie: cookieOf(await signIn(service)), 'content-type': 'application/json' }
  for (const name of [undefined, '', '  ', 'a\0b']) {
    const answer = await fetch(`${service.urls.console}/account/passkeys`, {
      method: 'POST',
      headers: { ...headers, 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify({ name }),
    })
    assert.match(await answer.text(), /Give the passkey a name/, JSON.stringify(name))
  }
})

test('a passkey is added soon after signing in alone', async (t) => {
  const service = await startTestService(t, { isDev: false, roles })
  const visitor = newVisitor(service, await signIn(service))
  assert.equal((await visitor.post('/account/passkeys/options')).status, 200)
  service.advance(1_800_000)
  await visitor.get('/account')
  const lastUse = async () => (await service.store.listSessions())[0]?.seenAt ?? 0
  await eventually(async () => service.store.now() - (await lastUse()) < 60_000) // a use does not make it new
  service.advance(1_800_001)
  const late = await visitor.post('/account/passkeys/options')
  assert.equal(late.status, 403)
  assert.match(await late.text(), /within an hour of signing in/)
})

const groups = [
  { group: 'postern-admins', role: 'admin', app: null },
  { group: 'acme-team', role: 'operator', app: 'acme' },
  { group: 'shop-team', role: 'operator', app: 'shop' },
  { group: 'shop-readers', role: 'reader', app: 'shop' },
  { group: 'lost-team', role: 'operator', app: 'no-such-app' },
] as const

async function startWithProvider(scope: Scope) {
  const port = await freePort()
  const at = `http://127.0.0.1:${port}`
  const provider = await startOpenIdProvider(scope, `${at}/sign-in/oidc/callback`)
  const { issuer } = provider
  const oidc = { issuer, clientId: client.id, clientSecret: client.secret, claim: 'groups', groups }
  const service = await startTestService(scope, { isDev: false, roles, oidc, consolePort: port })
  const people = async () => (await service.store.listPeople()).map(({ name, role, apps }) => ({ name, role, apps }))
  return { service, people, start: `${at}/sign-in/oidc`, ...provider }
}

test('a person of an OpenID provider signs in, and gets the permission of the groups, anew each time', async (t) => {
  const { service, people, start, user } = await startWithProvider(t)
  const { store } = service
  user.groups = ['others', 'postern-admins']
  const first = await follow(`${start}?to=/apps`)
  assert.equal(first.url.pathname, '/apps', first.text)
  assert.deepEqual(await people(), [{ name: 'ada', role: 'admin', apps: null }])
  const shop = await newSender(service, 'shop')
  user.groups = ['acme-team', 'shop-team']
  user.name = 'another name'
  assert.equal((await follow(start)).status, 200)
  assert.deepEqual(await people(), [{ name: 'ada', role: 'operator', apps: [service.app.id, shop.app.id] }])
  user.groups = ['shop-readers', 'acme-team']
  assert.equal((await follow(start)).status, 200)
  const [ada] = await people()
  assert.deepEqual(ada, { name: 'ada', role: 'operator', apps: [service.app.id] }, 'no app by a lesser role')
  for (const none of [['others'], [], ['lost-team']]) {
    user.groups = none
    const refused = await follow(start)
    assert.equal(refused.status, 403)
    assert.match(refused.text, /None of your groups has access to this console/)
  }
  user.groups = ['postern-admins']
  const [person] = await store.listPeople()
  if (person !== undefined) await store.updatePerson(person.id, { disabled: true }, operator)
  assert.match((await follow(start)).text, /An admin has disabled your access/)
  assert.ok(service.log.some((line) => line.includes('a sign-in to the console was refused')))
  const page = await (await fetch(`${service.urls.console}/sign-in`)).text()
  assert.match(page, /Continue with 127\.0\.0\.1/)
})

test('the name that a provider gives a person looks like no other actor', async (t) => {
  for (const [given, name] of [
    ['cli:root\u200b', 'person cli:root'],
    ['\u200b Grace ', 'Grace'],
    [' \u200b', 'person'],
  ] as const) {
    const { people, start, user } = await startWithProvider(t)
    user.groups = ['postern-admins']
    user.name = given
    assert.equal((await follow(start)).status, 200)
    assert.deepEqual(
      (await people()).map((person) => person.name),
      [name],
    )
  }
})

test('an answer with another state, code, issuer or nonce, or to another browser, is refused', async (t) => {
  const { service, start, user } = await startWithProvider(t)
  user.groups = ['postern-admins']
  const refused = async (options: Parameters<typeof follow>[1], reason: RegExp) => {
    const { status, text } = await follow(start, options)
    assert.equal(status, 403)
    assert.match(text, reason)
    assert.deepEqual(await service.store.listSessions(), [])
  }
  for (const name of ['state', 'code', 'iss']) {
    const change = ({ pathname, searchParams }: URL) => {
      if (pathname.endsWith('/callback')) searchParams.set(name, 'another')
    }
    await refused({ change }, /could not be verified/)
  }
  const nonce = ({ searchParams }: URL) => {
    if (searchParams.has('nonce')) searchParams.set('nonce', 'another')
  }
  await refused({ change: nonce }, /could not be verified/)
  const cookies = new Map<string, string>()
  const forget = ({ pathname }: URL) => {
    if (pathname.endsWith('/callback'))
      for (const key of cookies.keys()) if (key.endsWith('postern-oidc')) cookies.delete(key)
  }
  await refused({ cookies, change: forget }, /started in another browser/)
})

test('a forged ID token is refused: another audience, issuer, key, or one that has expired', async (t) => {
  const { service, start, state, user } = await startWithProvider(t)
  user.groups = ['postern-admins']
  const past = Math.floor(Date.now() / 1000) - 3600
  const forgeries: [string, Forgery][] = [
    ['audience', { change: (claims) => ({ ...claims, aud: 'another-client' }) }],
    ['audiences', { change: (claims) => ({ ...claims, aud: [client.id, 'another-client'], azp: 'another-client' }) }],
    ['issuer', { change: (claims) => ({ ...claims, iss: 'https://evil.test' }) }],
    ['nonce', { change: (claims) => ({ ...claims, nonce: 'another' }) }],
    ['time', { change: (claims) => ({ ...claims, exp: past }) }],
    ['key', { strange: true }],
  ]
  for (const [name, forgery] of forgeries) {
    state.forgery = forgery
    const { status, text } = await follow(start)
    assert.equal(status, 403, name)
    assert.match(text, /could not be verified/)
    assert.deepEqual(await service.store.listSessions(), [], name)
  }
  state.forgery = {}
  assert.equal((await follow(start)).status, 200, 'signed again without a change, it holds')
})

test('what a browser keeps between leaving and coming back is gone afterwards', async (t) => {
  const { start, user } = await startWithProvider(t)
  user.groups = ['postern-admins']
  const cookies = new Map<string, string>()
  const kept: string[] = []
  const change = () => {
    kept.push(...[...cookies].filter(([key]) => key.endsWith(' postern-oidc')).map(([, value]) => value))
  }
  assert.equal((await follow(start, { cookies, change })).status, 200)
  assert.match(kept[0] ?? '', /^[\w-]{100,}$/)
  assert.equal(kept.at(-1), '')
})

test('an OpenID provider that is down is reported, and asked again', async (t) => {
  const [port, providerPort] = [await freePort(), await freePort()]
  const at = `http://127.0.0.1:${port}`
  const issuer = `http://127.0.0.1:${providerPort}`
  const oidc = { issuer, clientId: client.id, clientSecret: client.secret, claim: 'groups', groups }
  await startTestService(t, { isDev: false, roles, oidc, consolePort: port })
  const start = `${at}/sign-in/oidc`
  const flow = { state: 's', nonce: 'n', verifier: 'v', to: '/' }
  const cookie = `postern-oidc=${Buffer.from(JSON.stringify(flow)).toString('base64url')}`
  const cameBack = await fetch(`${start}/callback?code=x&state=s`, {
    headers: { accept: 'text/html', cookie },
  })
  const left = await follow(start)
  assert.deepEqual([left.status, cameBack.status], [403, 403])
  for (const text of [left.text, await cameBack.text()]) assert.match(text, /The OpenID provider does not answer/)
  const { user } = await startOpenIdProvider(t, `${start}/callback`, providerPort)
  user.groups = ['postern-admins']
  assert.equal((await follow(start)).status, 200)
})
