import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { App } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppSettings, defaultSettings } from '../../domain/app/settings.ts'
import type { AuthHookName } from '../../domain/auth-hooks/auth-hook-settings.ts'
import type { AppId, KeyId } from '../../domain/id.ts'
import type { AuthHookKey } from '../../store/auth-hook-store.ts'
import { checkAuthHooks, findAuthHookFaults } from './find-auth-hook-faults.ts'

const base = 'https://links.acme.test'
const page = 'https://app.acme.test/code'

const newApp = (slug: string, change: Partial<AppSettings> = {}, status: App['status'] = 'active'): App => ({
  ...{ id: `app_${slug}` as AppId, slug, version: 1, status, createdAt: 0, updatedAt: 0 },
  settings: {
    ...{ ...defaultSettings, name: slug, from: { name: slug, address: 'auth@acme.test' } },
    ...change,
  },
})

const keyOf = ({ id }: App, hook: AuthHookName, sealed: string | null = null): AuthHookKey => ({
  ...{
    id: `key_${hook}_${sealed ?? 'sent'}` as KeyId,
    app: id,
    hook,
    hash: `hash-${sealed}` as KeyHash,
    sealed,
  },
})

/** The ring opens no secret that is sealed as `lost`. */
const situation = (linksBaseUrl: string | null = base) => ({
  linksBaseUrl,
  opensAuthHookSecret: ({ sealed }: { sealed: string }) => sealed !== 'lost',
})

const faults = (app: App, keys: AuthHookKey[], linksBaseUrl: string | null = base) =>
  findAuthHookFaults(situation(linksBaseUrl), [app], keys).map(({ app: slug, message }) => `${slug}: ${message}`)

test('links of the auth server itself need hosted links of the service and of the app', () => {
  const acme = newApp('acme')
  const kratos = [keyOf(acme, 'kratos')]
  assert.deepEqual(faults(acme, kratos), [])
  const [service, ...more] = faults(acme, kratos, null)
  assert.match(service ?? '', /^acme: Emails of Ory Kratos for acme .* are refused, .*Set POSTERN_LINKS_BASE_URL/)
  assert.deepEqual(more, [])
  const off = newApp('off', { hostedLinks: 'off' })
  assert.match(faults(off, [keyOf(off, 'kratos')])[0] ?? '', /^off: .*Let off use hosted links/)
})

test('an app that leads all mail to pages of its own needs none, and neither does Logto', () => {
  const paged = newApp('paged', { authHooks: { supabase: { pages: { default: page } }, logto: {} } })
  assert.deepEqual(faults(paged, [keyOf(paged, 'supabase', 'ok'), keyOf(paged, 'logto')], null), [])
  const own = { verifyUrl: 'https://auth.acme.test/auth/v1/verify', pages: { default: page } }
  const verify = newApp('verify', { authHooks: { supabase: own } })
  assert.equal(faults(verify, [keyOf(verify, 'supabase', 'ok')], null).length, 1)
})

test('a secret that the ring does not open is named, with its id', () => {
  const acme = newApp('acme')
  const found = faults(acme, [keyOf(acme, 'zitadel', 'lost'), keyOf(acme, 'zitadel', 'ok')])
  assert.equal(found.length, 1)
  assert.match(found[0] ?? '', /^acme: Calls of Zitadel for acme .*secret key_zitadel_lost/)
})

test('apps that are disabled, have no secret, or whose secrets are of another app have no fault', () => {
  const [acme, globex] = [newApp('acme'), newApp('globex')]
  const disabled = newApp('disabled', {}, 'disabled')
  assert.deepEqual(faults(disabled, [keyOf(disabled, 'kratos'), keyOf(disabled, 'zitadel', 'lost')], null), [])
  assert.deepEqual(faults(acme, [keyOf(globex, 'kratos')], null), [])
  assert.deepEqual(faults(acme, [], null), [])
})

test('a check has a finding for each fault, or says where auth servers are listened for', () => {
  const [acme, globex] = [newApp('acme'), newApp('globex')]
  const keys = [keyOf(acme, 'kratos'), keyOf(acme, 'logto'), keyOf(globex, 'kratos')]
  const check = (linksBaseUrl: string | null, authHooksListener: string | null, known: AuthHookKey[]) =>
    checkAuthHooks({ ...situation(linksBaseUrl), authHooksListener }, [acme, globex], known).map(
      ({ check: name, detail, ok }) => `${ok} ${name}: ${detail}`,
    )
  assert.equal(check(null, null, keys).filter((line) => line.startsWith('false auth servers: ')).length, 2)
  assert.deepEqual(check(base, '0.0.0.0:4025', keys), [
    'true auth servers: connected to 2 apps; the auth hooks listener is on 0.0.0.0:4025',
  ])
  assert.match(`${check(base, null, keys)}`, /this process does not listen/)
  assert.deepEqual(check(null, null, []), ['true auth servers: none is connected'])
})
