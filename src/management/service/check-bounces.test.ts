import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { App } from '../../domain/app/app.ts'
import { defaultSettings } from '../../domain/app/settings.ts'
import type { AppId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { checkBounces, checkReports } from './check-bounces.ts'

const address = 'bounces@bounce.acme.test' as EmailAddress
const listener = '127.0.0.1:4024'

const newApp = (slug: string, envelopeFrom: EmailAddress | null): App => ({
  ...{ id: `app_${slug}` as AppId, slug, version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
  settings: {
    ...{ ...defaultSettings, name: slug, from: { name: slug, address: 'auth@acme.test' } },
    ...(envelopeFrom !== null && { envelopeFrom }),
  },
})
const plain = newApp('plain', null)
const own = newApp('own', 'bounces+@own.test' as EmailAddress)
const fixed = newApp('fixed', 'bounces@fixed.test' as EmailAddress)

const check = (bounceAddress: EmailAddress | null, bounceListener: string | null, ...apps: App[]) => {
  const { check: name, ok, detail } = checkBounces({ bounceAddress, bounceListener }, apps)
  assert.equal(name, 'bounces')
  return `${ok ? 'ok' : 'FAIL'} ${detail}`
}

test('a listener to which no email leads is a fault, which says what to do', () => {
  const fault =
    /^FAIL the bounce listener is on 127\.0\.0\.1:4024, but no email .*POSTERN_BOUNCE_ADDRESS.*--envelope-from/
  assert.match(check(null, listener), fault)
  assert.match(check(null, listener, plain, fixed), fault)
  assert.equal(
    check(null, listener, plain, own),
    'ok 1 app has a bounce address of its own; the bounce listener is on 127.0.0.1:4024',
  )
  assert.equal(
    check(address, listener, plain),
    'ok bounces@bounce.acme.test is the bounce address; the bounce listener is on 127.0.0.1:4024',
  )
})

test('without a listener, the bounce address is said, or where bounces go without one', () => {
  const none = 'no bounce listener in this process (POSTERN_BOUNCE_LISTEN)'
  assert.equal(
    check(null, null, plain, fixed),
    `ok no bounce address (POSTERN_BOUNCE_ADDRESS), so bounces go to the senders; ${none}`,
  )
  assert.equal(
    check(address, null, own, { ...own, slug: 'two' }),
    `ok bounces@bounce.acme.test is the bounce address, and 2 apps have bounce addresses of their own; ${none}`,
  )
})

test('the reports listener, its providers, and when each source was last heard', () => {
  const nowMs = 1_794_000_000_000
  const detail = (...sources: Parameters<typeof checkReports>[1]) =>
    checkReports({ reportsListener: '127.0.0.1:4026', reportProviders: ['postmark', 'resend'] }, sources, nowMs).detail
  assert.equal(detail(), 'the reports listener is on 127.0.0.1:4026, for postmark, resend; last reports: none yet')
  assert.equal(
    detail({ source: 'mail', heardAt: nowMs - 180_000 }, { source: 'resend', heardAt: nowMs - 7_200_000 }),
    'the reports listener is on 127.0.0.1:4026, for postmark, resend; last reports: mail 3 min ago, resend 2 h ago',
  )
  assert.deepEqual(checkReports({ reportsListener: null, reportProviders: [] }, [], nowMs), {
    check: 'reports',
    ok: true,
    detail: 'this process has no reports listener (POSTERN_REPORTS_LISTEN); last reports: none yet',
  })
})
