/**
 * The console for a test: a service with something on every page, people who are signed in, and requests as
 * browsers send them.
 */
import assert from 'node:assert/strict'
import type { BrowserContext } from 'playwright-core'
import type { AppId, PersonId } from '../../src/domain/id.ts'
import type { Role } from '../../src/domain/operator/management-token.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  newSessionSecret,
  newSignInCode,
} from '../../src/domain/operator/sign-in.ts'
import { makeWebhookSecret, sealWebhookSecret } from '../../src/store/crypto/webhook-secret.ts'
import { routes } from '../../src/web/operators/console/pages/routes.ts'
import { operator } from './operator.ts'
import {
  newSender,
  refusalsOf,
  relayTo,
  send,
  startTestService,
  type TestOptions,
  type TestService,
  testSettings,
  validBody,
} from './service.ts'
import { startSmtpServer } from './smtp.ts'
import type { Scope } from './temporary.ts'
import { eventually } from './wait.ts'

let serial = 0

export type Signed = { readonly secret: string; readonly person: string; readonly name: string }

/** A person with a session, made directly in the store. */
export async function signIn(
  { store }: Pick<TestService, 'store'>,
  role: Role = 'admin',
  apps: readonly AppId[] | null = null,
): Promise<Signed> {
  const name = `${role} ${serial++}`
  const person = await store.createPerson({ name, role, apps }, operator)
  if (person === 'name_taken') throw new Error('the name is taken')
  return { secret: await beginSession(store, person.id), person: person.id, name }
}

/** A session of a person, who may have others. */
export async function beginSession(store: TestService['store'], person: PersonId): Promise<string> {
  const hash = hashSignInCode(newSignInCode())
  await store.createSignInCode({ hash, person, expiresAt: store.now() + 60_000 }, operator)
  const secret = newSessionSecret()
  const session = { hash: hashSessionSecret(secret), agent: 'test', requestId: 'req_test' }
  if ((await store.signInByCode(hash, session)) === null) throw new Error('no session began')
  return secret
}

/** A code that signs a new person in once. */
export async function newCode({ store }: Pick<TestService, 'store'>, role: Role = 'admin'): Promise<string> {
  const person = await store.createPerson({ name: `${role} ${serial++}`, role, apps: null }, operator)
  if (person === 'name_taken') throw new Error('the name is taken')
  const code = newSignInCode()
  const link = { hash: hashSignInCode(code), person: person.id, expiresAt: store.now() + 60_000 }
  await store.createSignInCode(link, operator)
  return code
}

/** The address of the console by a name that browsers treat as secure. */
export const consoleAt = ({ urls }: Pick<TestService, 'urls'>): string =>
  (urls.console ?? '').replace('127.0.0.1', 'postern.localhost')

export const cookieOf = ({ secret }: Signed): string => `postern=${secret}`

/** Gives a browser a session. */
export const useSession = (context: BrowserContext, address: string, { secret }: Signed): Promise<void> =>
  context.addCookies([{ name: 'postern', value: secret, url: address, httpOnly: true, sameSite: 'Lax' }])

/** People in turn, so that a test with many requests reaches no rate. */
export const signInMany = (service: Pick<TestService, 'store'>, role: Role = 'admin'): Promise<Signed[]> =>
  Promise.all(Array.from({ length: 30 }, () => signIn(service, role)))

/** Requests as a browser sends them from a page of the console; by several people, in turn. */
export function newVisitor(service: TestService, signed: Signed | readonly Signed[] | null) {
  const base = service.urls.console ?? ''
  const people = signed === null ? [] : [signed].flat()
  let turn = 0
  const headersOf = (): Record<string, string> => {
    const next = people[turn++ % Math.max(1, people.length)]
    return { accept: 'text/html', ...(next && { cookie: cookieOf(next) }) }
  }
  return {
    get: (path: string, more: Record<string, string> = {}) =>
      fetch(`${base}${path}`, {
        headers: { ...headersOf(), 'sec-fetch-site': 'same-origin', ...more },
        redirect: 'manual',
      }),
    post: (path: string, fields: Record<string, string> = {}, more: Record<string, string> = {}) =>
      fetch(`${base}${path}`, {
        method: 'POST',
        headers: { ...headersOf(), 'sec-fetch-site': 'same-origin', ...more },
        body: new URLSearchParams(fields),
        redirect: 'manual',
      }),
  }
}

/** The fields of the form that posts to `path`, as a browser would send them. */
export function formOf(html: string, path: string): Record<string, string> {
  const form = html.match(/<form[\s\S]*?<\/form>/g)?.find((each) => each.includes(`action="${path}"`)) ?? ''
  assert.notEqual(form, '', `no form for ${path}`)
  const inputs = [...form.matchAll(/<input[^>]* name="([^"]+)"[^>]*?(?: value="([^"]*)")/g)]
  const values = inputs.map(([all, name = '', value = '']) => [name, /value="([^"]*)"/.exec(all)?.[1] ?? value])
  return Object.fromEntries(values)
}

/** Large providers explain at length. */
const longAsReal =
  '. Please try double-checking the address for typos or unnecessary spaces. For more information, go to our page on addresses that do not exist: our support cannot help with them'

/** A relay that defers, refuses or takes mail by the recipient's name. */
const startMoodyRelay = (scope: Scope) =>
  startSmtpServer(scope, {
    onRcptTo({ address }, _session, callback) {
      const replies: Record<string, [number, string]> = {
        later: [451, '4.7.1 Greylisted, try again in 60 s'],
        nobody: [550, `5.1.1 The mailbox does not exist${longAsReal}`],
      }
      const [code, text] = replies[address.split('@')[0]?.replace(/\d+$/, '') ?? ''] ?? []
      if (code === undefined) return callback()
      callback(Object.assign(new Error(text), { responseCode: code }))
    },
  })

/** A service behind a sign-in, with emails in every state, refusals, and an app that is disabled. */
export async function startBusyConsole(scope: Scope, options: TestOptions = {}) {
  const relay = await startMoodyRelay(scope)
  const service = await startTestService(scope, {
    isDev: false,
    relays: [relayTo(relay.port)],
    linksBaseUrl: 'https://links.acme.test',
    settings: { supportContact: 'help@acme.test' },
    ...options,
  })
  const { store } = service
  const shop = await newSender(service, 'shop', {
    ...testSettings,
    name: 'Shop',
    allowedUrls: ['https://shop.acme.test/auth/*'],
  })
  for (const [n, to] of ['ada', 'bob', 'later1', 'later2', 'nobody', 'cy'].entries())
    await service.post(validBody({ to: `${to}@example.com`, ...(n % 2 === 1 && { type: 'password_reset' }) }))
  await service.post(validBody({ to: 'ada@example.com', url: 'https://staging.acme.test/auth/?token=secret-of-ada' }))
  await service.post(validBody({ to: 'not an address' }))
  await send(
    service.apiUrl,
    JSON.stringify(validBody({ to: 'dan@example.com', url: 'https://shop.acme.test/auth/x?token=y' })),
    {
      authorization: `Bearer ${shop.key}`,
    },
  )
  const old = await newSender(service, 'old-shop', { ...testSettings, name: 'Old Shop' })
  await send(service.apiUrl, JSON.stringify(validBody({ to: 'later9@example.com' })), {
    authorization: `Bearer ${old.key}`,
  })
  const states = async () =>
    (await store.listEmails({ limit: 50 })).items.map(({ state, trail }) => `${state}${trail.length}`)
  await eventually(
    async () => (await states()).every((each) => !/^(queued|sending)/.test(each)) && (await states()).length === 8,
  )
  await store.updateApp(old.app.id, { status: 'disabled' }, operator)
  await eventually(async () => (await refusalsOf(store, service.app.id)).length === 2)
  const find = async (to: string) => {
    const recipient = store.nameRecipient(to as Parameters<typeof store.nameRecipient>[0])
    return (await store.listEmails({ recipient, limit: 1 })).items[0]?.id ?? ''
  }
  return { ...service, relay, shop, find }
}

/** The address of every page, with something of the service on it. */
/** A webhook that its receiver refused. */
export async function newWebhook({ app: { id }, config, store }: Pick<TestService, 'app' | 'config' | 'store'>) {
  const { settings } = (await store.findApp(id)) ?? assert.fail()
  await store.updateApp(id, { settings: { ...settings, webhookUrl: 'https://app.acme.example/postern' } }, operator)
  const sealed = sealWebhookSecret(config.ring, id, makeWebhookSecret())
  await store.setWebhookSecret({ app: id, sealed, oldUntil: 0 }, operator)
  const facts = { emailType: 'magic_link', cause: 'no_mailbox', permanent: true } as const
  const message = await store.addWebhookMessage({ app: id, event: 'email.bounced', email: null, facts, sealed: null })
  const [claimed] = await store.claimWebhooks(id, 1)
  const response = 'no route for POST /postern'
  if (claimed !== undefined)
    await store.endWebhookTry({ ...claimed, result: '404', response, receiver: 'fails', waitMs: 300_000 })
  return message
}

type PagedService = Pick<Awaited<ReturnType<typeof startBusyConsole>>, 'app' | 'config' | 'find' | 'keyId' | 'store'>

/** Whether a page is shown in frames of others: an email, or the page of a hosted link. */
export const isFrame = (path: string): boolean => /\/((look|words)\/email|hosted-links\/page)$/.test(path)

export async function consolePages(service: PagedService): Promise<string[]> {
  const { app, find, keyId, store } = service
  const [refusal] = await refusalsOf(store, app.id)
  const person = await store.createPerson({ name: `person ${serial++}`, role: 'reader', apps: [app.id] }, operator)
  const values: Record<string, string> = {
    app: 'acme',
    system: 'zitadel',
    email: await find('later1@example.com'),
    request: refusal?.requestId ?? '',
    person: typeof person === 'string' ? '' : person.id,
    message: await newWebhook(service),
  }
  const pages = routes
    .filter(([line]) => line.startsWith('GET') && !isFrame(line))
    .map(([line]) => line.slice(4).replace(/:(\w+)/g, (_, name: string) => values[name] ?? ''))
  return [
    ...pages,
    `/emails/${await find('nobody@example.com')}`,
    `/apps/acme/keys?revoke=${keyId}`,
    `/apps/acme/keys?replace=${keyId}`,
    `/apps/acme/keys?networks=${keyId}`,
    '/apps/acme/settings?confirm=disable&done=saved',
    '/apps/old-shop/settings?confirm=delete',
    '/emails?confirm=retry',
    '/?range=7d',
  ]
}
