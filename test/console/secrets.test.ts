/**
 * The console shows nothing that is sealed or secret, whatever is on its pages, and runs nothing that others
 * wrote.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { consolePages, newCode, newVisitor, signInMany, startBusyConsole } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { newSender, refusalsOf, send, testSettings, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startBusyConsole({ after })
const signed = await signInMany(service)
const visitor = newVisitor(service, signed)

test('no page, stream, log or metric shows a recipient, a link, a name or a secret', async () => {
  const { store } = service
  await service.post(
    validBody({
      to: 'mark-recipient@example.com',
      type: 'organisation_invite',
      organisationName: 'mark-organisation',
      inviterName: 'mark-inviter',
      url: 'https://app.acme.test/mark-path?token=mark-token',
    }),
  )
  await service.post(
    validBody({ to: 'mark-refused@example.com', url: 'https://other.test/mark-other?token=mark-token-2' }),
  )
  await eventually(async () =>
    (await refusalsOf(store, service.app.id)).some(({ origin }) => origin === 'https://other.test'),
  )
  const made: string[] = []
  const make = async (path: string, fields: Record<string, string>, shape: RegExp) => {
    const answer = await visitor.post(path, fields)
    const [secret = ''] = shape.exec(await answer.text()) ?? []
    assert.notEqual(secret, '', `${path} shows what it made`)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    made.push(secret)
  }
  await make('/apps/acme/keys', { name: 'made in the console' }, /pst_\w{49}/)
  const [key] = (await store.listKeys(service.app.id)).filter(({ name }) => name === 'made in the console')
  await make(`/apps/acme/keys/${key?.id}/replace`, { grace: '0' }, /pst_\w{49}/)
  await make('/settings/tokens', { name: 'made in the console', role: 'reader' }, /psa_\w{49}/)
  await make('/settings/people', { name: 'Invited', role: 'reader' }, /psl_\w{49}/)
  const code = await newCode(service)
  const cookie = (await visitor.post('/sign-in', { code })).headers.get('set-cookie') ?? ''
  await visitor.post('/sign-in', { code: `${code}x` })
  for (const q of ['mark-recipient@example.com', 'em_mark@example.com']) {
    const location = (await visitor.post('/find', { q })).headers.get('location')
    assert.match(location ?? '', /^\/emails\?recipient=rc_/, 'no address stands in an address')
  }
  await visitor.post('/apps/acme/links/test', { url: 'https://app.acme.test/x?token=mark-tested' })
  await visitor.post('/apps/acme/test-email', { to: 'mark-tested@example.com' })
  const secrets = [...made, code, ...signed.map(({ secret }) => secret), /pss_\w+/.exec(cookie)?.[0] ?? '', service.key]
  const found = await service.find('mark-recipient@example.com')
  const pages = [...(await consolePages(service)), `/emails/${found}`, '/sign-in', '/nope', '/emails/em_nothing']
  const texts = await Promise.all(pages.map(async (path) => `${path}\n${await (await visitor.get(path)).text()}`))
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  for (const text of [...texts, ...service.log, metrics]) {
    assert.doesNotMatch(text, /mark-/, text.slice(0, 80))
    for (const secret of secrets) assert.ok(!text.includes(secret), text.slice(0, 80))
  }
  assert.match(metrics, /postern_console_sign_ins_total\{method="code",result="signed_in"\} 1/)
  assert.match(metrics, /postern_console_sign_ins_total\{method="code",result="refused"\} 1/)
})

test('hostile names and replies stay text on every page', async () => {
  const hostile = `"><img src=x onerror=alert(1)><script>alert(1)</script>'"&`
  const { store } = service
  const settings = {
    ...testSettings,
    name: hostile,
    from: { name: hostile, address: 'a@hostile.test' as const },
  }
  const { app, key } = await newSender(service, 'hostile', settings)
  await store.createKey({ app: app.id, hash: 'hash' as never, name: hostile, expiresAt: null }, operator)
  await store.createPerson({ name: hostile, role: 'reader', apps: [app.id] }, operator)
  await store.updateApp(
    app.id,
    { settings: { ...settings, supportContact: hostile, branding: { addressLine: hostile } } },
    { ...operator, name: hostile },
  )
  const body = validBody({ to: 'later77@example.com' })
  await send(service.apiUrl, JSON.stringify(body), { authorization: `Bearer ${key}` })
  const id = await service.find('later77@example.com')
  const paths = [
    '/',
    '/apps',
    '/apps/hostile',
    '/apps/hostile/links',
    '/apps/hostile/look',
    '/apps/hostile/keys',
    '/apps/hostile/settings',
  ]
  const others = [
    '/emails',
    `/emails/${id}`,
    '/audit',
    '/settings/people',
    `/emails?app=${encodeURIComponent(hostile)}`,
    `/?done=${encodeURIComponent(hostile)}`,
  ]
  const reflected = [
    `/apps/hostile/links?url=${encodeURIComponent(hostile)}`,
    `/sign-in?to=${encodeURIComponent(hostile)}`,
    `/emails?recipient=${encodeURIComponent(hostile)}&key=${encodeURIComponent(hostile)}`,
    `/${encodeURIComponent(hostile)}`,
  ]
  for (const path of [...paths, ...others, ...reflected]) {
    const text = await (await visitor.get(path)).text()
    assert.doesNotMatch(text, /<img|<script>|onerror=alert\(1\)>/, path)
  }
  const forms: [string, Record<string, string>][] = [
    ['/new-app', { name: hostile, slug: hostile, from: hostile, allowedUrls: hostile }],
    ['/apps/hostile/links/test', { url: hostile }],
    ['/apps/hostile/links/add', { entry: hostile }],
    ['/apps/hostile/look', { logoUrl: hostile, accentColour: hostile, addressLine: hostile }],
    ['/apps/hostile/settings', { name: hostile, daily: hostile }],
    ['/apps/hostile/test-email', { to: hostile }],
    ['/settings/tokens', { name: hostile, app: hostile }],
    ['/find', { q: hostile }],
    ['/sign-in', { code: hostile, to: hostile }],
  ]
  for (const [path, fields] of forms)
    assert.doesNotMatch(await (await visitor.post(path, fields)).text(), /<img|<script>/, path)
})
