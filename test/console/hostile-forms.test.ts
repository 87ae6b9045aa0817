/**
 * Every page and form of the console with input that no browser of an honest person sends: never a 500, and
 * each fault has its field.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { roles } from '../../src/domain/operator/management-token.ts'
import { routes } from '../../src/web/operators/console/pages/routes.ts'
import { cookieOf, newVisitor, signIn, signInMany, startBusyConsole } from '../support/console.ts'
import { refusalsOf } from '../support/service.ts'

const service = await startBusyConsole({ after })
// So many that no request is refused for the rate of its person.
const people = (await Promise.all(Array.from({ length: 8 }, () => signInMany(service)))).flat()
for (const role of roles) people.push(await signIn(service, role))
const base = service.urls.console ?? ''
const [refusal] = await refusalsOf(service.store, service.app.id)
const email = await service.find('later1@example.com')
const { items: tokens } = { items: await service.store.listTokens() }

const known: Readonly<Record<string, string>> = {
  app: 'acme',
  email,
  request: refusal?.requestId ?? '',
  key: service.keyId,
  person: people[0]?.person ?? '',
  token: tokens[0]?.id ?? 'tok_0',
  session: 'ses_0',
}

const others = [
  'POST /sign-in',
  'POST /sign-in/passkey',
  'POST /sign-in/passkey/options',
  'POST /account/passkeys',
  'POST /account/passkeys/options',
  'GET /sign-in',
  'GET /live',
] as const
const lines = [...routes.map(([line]) => line), ...others]
const pathOf = (line: string, value?: string): string =>
  line.replace(/^\w+ /, '').replace(/:(\w+)/g, (_, name: string) => value ?? known[name] ?? 'x')

const values: Readonly<Record<string, string>> = {
  nothing: '',
  blank: ' \t\n ',
  nul: 'a\0b',
  'half a surrogate pair': '\ud83d',
  'a number out of every range': '1e20',
  'a negative number': '-1',
  'not a number': 'NaN',
  'a name of every object': '__proto__',
  markup: '"><script>alert(1)</script>',
  'a list as text': '["a","b"]',
  long: 'x'.repeat(20_000),
  'as long as a form may be': 'x'.repeat(64 * 1024 - 20),
  'longer than a form may be': 'x'.repeat(70 * 1024),
}

/** The names of all fields of all forms, and of what pages read from their address. */
async function fieldNames(): Promise<string[]> {
  const names = new Set(['cursor', 'topic', 'q', 'once', 'passkey', 'response', 'id', 'url', 'done', 'range'])
  const visitor = newVisitor(service, people)
  for (const line of lines.filter((each) => each.startsWith('GET') && each !== 'GET /live')) {
    const text = await (await visitor.get(pathOf(line))).text()
    for (const [, name = ''] of text.matchAll(/ name="([^"]+)"/g)) names.add(name)
  }
  return [...names]
}

const names = await fieldNames()
const addressMax = 12_000
let turn = 0

async function statusOf(line: string, search: string | null, body: string | null): Promise<number> {
  const [method = 'GET'] = line.split(' ')
  const response = await fetch(`${base}${pathOf(line)}${search === null ? '' : `?${search}`}`, {
    method,
    headers: {
      accept: 'text/html',
      cookie: cookieOf(people[turn++ % people.length] ?? { secret: '', person: '', name: '' }),
      'sec-fetch-site': 'same-origin',
      ...(body !== null && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(10_000),
  })
  await response.body?.cancel()
  return response.status
}

const bugs = () => service.log.filter((line) => line.includes('"bug"') || line.includes('internal_error'))

test('no form and no address makes a 500, whatever its fields hold', async () => {
  const faults: string[] = []
  let [asked, tooMany] = [0, 0]
  const check = (what: string, status: number) => {
    asked++
    if (status === 429) tooMany++
    if (status >= 500 && status !== 503) faults.push(`${what}: ${status}`)
  }
  for (const line of lines.filter((each) => each !== 'POST /apps/:app/delete')) {
    const isForm = line.startsWith('POST')
    for (const [what, value] of Object.entries(values)) {
      // An address takes no more than the first of the long values.
      if (!isForm && value.length > addressMax && what !== 'long') continue
      // A long value fills a form by itself; one that is too long is refused whatever its field is.
      const isLong = names.length * value.length > 60 * 1024
      const apart = value.length > 64 * 1024 ? names.slice(0, 1) : names
      const forms = isLong ? apart.map((name) => [[name, value]]) : [names.map((name) => [name, value])]
      for (const fields of forms) {
        const encoded = new URLSearchParams(fields).toString()
        const status = isForm
          ? await statusOf(line, null, encoded)
          : await statusOf(line, encoded.slice(0, addressMax), null)
        check(`${line}, ${what}`, status)
      }
    }
    const twice = names.map((name) => `${name}=a&${name}=b`).join('&')
    check(`${line}, each field twice`, await statusOf(line, twice, isForm ? twice : null))
    const none = await statusOf(line, null, isForm ? '' : null)
    check(`${line} without fields`, none)
  }
  assert.deepEqual(faults, [])
  assert.ok(asked > 2000 && tooMany < asked / 20, `${tooMany} of ${asked} requests were not looked at`)
  assert.deepEqual(bugs(), [])
})

test('no path makes a 500, whatever its parts hold', async () => {
  const faults: string[] = []
  const visitor = newVisitor(service, people)
  for (const line of lines.filter((each) => each.includes(':')))
    for (const part of ['%00', '%ED%A0%BD', '__proto__', '..%2f..', 'x'.repeat(5000), '%F0%9F%98%80', '1e20']) {
      const path = pathOf(line, part)
      const { status } = line.startsWith('GET') ? await visitor.get(path) : await visitor.post(path)
      if (status >= 500) faults.push(`${line} with ${part.slice(0, 20)}: ${status}`)
    }
  assert.deepEqual(faults, [])
  assert.deepEqual(bugs(), [])
})

const bad = {
  senderAddress: 'a@localhost',
  senderName: '\u0007',
  name: '',
  replyTo: 'nobody',
  envelopeFrom: '@',
  recipientPerHour: '0',
  daily: 'many',
  keyPerMinute: '1.5',
}

/** Forms whose input is refused, each with the number of fields that have a fault. */
const refusedForms: readonly (readonly [string, Readonly<Record<string, string>>, number])[] = [
  ['/apps/acme/settings', bad, 8],
  ['/apps/acme/settings', { daily: '1e30' }, 1],
  ['/apps/acme/links/add', { kind: 'allowedUrls', entry: 'http://staging.acme.example' }, 1],
  ['/apps/acme/links/add', { kind: 'appSchemes', entry: 'javascript' }, 1],
  ['/apps/acme/links/add', { kind: 'allowedUrls', entry: `https://acme.test/${'x'.repeat(3000)}` }, 1],
  ['/apps/acme/hosted-links', { 'opens-magic_link': 'foo', 'opens-password_reset': 'bar', fallbackUrl: 'http://x' }, 3],
  ['/apps/acme/hosted-links', { hostedLinks: 'no' }, 1],
  ['/apps/acme/links/test', { url: 'x'.repeat(20_000) }, 1],
  [
    '/apps/acme/look',
    {
      ...{ logoUrl: 'http://x', accentColour: 'red', addressLine: 'x'.repeat(300), locale: 'xx' },
      supportContact: 'foo bar',
    },
    5,
  ],
  ['/apps/acme/webhooks', { webhookUrl: 'ftp://app.acme.test/' }, 1],
  ['/apps/acme/keys', { name: '\u0007' }, 1],
  ['/apps/acme/keys', { name: 'x'.repeat(101) }, 1],
  ['/apps/acme/test-email', { to: 'nobody' }, 1],
  ['/apps/old-shop/delete', { slug: 'old' }, 1],
  ['/new-app', { name: '\u0007', slug: '-', from: 'nobody', allowedUrls: 'nothing' }, 4],
  ['/new-app', { name: 'Acme', slug: 'acme', from: 'a@acme.test', allowedUrls: 'https://acme.test' }, 1],
  ['/settings/tokens', { name: 'cli:me', scope: 'apps' }, 1],
  ['/settings/tokens', { name: '' }, 1],
  ['/settings/transports', { name: 'Acme', relays: 'smtp://smtp.acme.example' }, 1],
  ['/settings/people', { name: 'pe_x', role: 'admin' }, 1],
  ['/settings/people', { name: 'Nobody', role: 'admin', scope: 'apps' }, 1],
]

test('each fault of a refused form names its field, which is marked and keeps what was typed', async () => {
  const visitor = newVisitor(service, people.slice(0, 30))
  for (const [path, fields, count] of refusedForms) {
    const answer = await visitor.post(path, fields)
    const text = await answer.text()
    const what = `${path} ${JSON.stringify(fields).slice(0, 80)}`
    assert.ok(answer.status >= 400 && answer.status < 500, `${what}: ${answer.status}`)
    const problem = /<div class="problem"[\s\S]*?<\/div>/.exec(text)?.[0] ?? ''
    const targets = [...problem.matchAll(/href="#([^"]*)"/g)].map(([, target = '']) => target)
    assert.equal(new Set(targets).size, count, `${what}: ${problem}`)
    for (const target of targets) {
      const [input = ''] = new RegExp(`<(?:input|select|fieldset)[^>]* id="${target}"[^>]*>`).exec(text) ?? []
      assert.notEqual(input, '', `${what}: there is no field "${target}"`)
      assert.match(input, /aria-invalid="true"/, `${what}: ${target}`)
      const [, by = ''] = /aria-describedby="([^"]*)"/.exec(input) ?? []
      for (const id of by.split(' ')) assert.ok(text.includes(`id="${id}"`), `${what}: ${id}`)
      const [, name = '', shown = ''] = / name="([^"]*)"[^>]*? value="([^"]*)"/.exec(input) ?? []
      const typed = (fields[name] ?? '').trim()
      if (input.startsWith('<input') && typed.length < 1000) assert.equal(shown, typed, `${what}: ${name}`)
      assert.doesNotMatch(problem, new RegExp(`>${name}</a>`), `${what}: fields are named by their labels`)
    }
    assert.doesNotMatch(problem, /type null/, what)
  }
})
