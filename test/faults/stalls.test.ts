/**
 * A hunt for stalls: hostile text in every header, field, path, parameter, setting and form that somebody can
 * send, on every listener. The service runs in this process, so the processor time of this thread is what a
 * request costs everybody. Text of twice the length may cost twice as much, not four times: only a request
 * that is not linear keeps the others waiting.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { newManagementToken } from '../support/management.ts'
import { startTestService, validBody } from '../support/service.ts'

const service = await startTestService({ after }, { isDev: false, linksBaseUrl: 'https://links.acme.test' })
const dev = await startTestService({ after }, { isDev: true })
const tokens = await Promise.all(Array.from({ length: 250 }, () => newManagementToken(service)))
let turn = 0
const appOrigin = 'https://app.acme.test'
const anyToken = () => tokens[turn++ % tokens.length] ?? ''

/** Begins with what the place expects, so that the text is read as far as possible. */
type Place = {
  readonly name: string
  readonly send: (text: string) => Promise<unknown>
  readonly begins: readonly string[]
  /** How long the text may be, so that it is not refused for its length alone. */
  readonly length: number
}

/** Sends a request as it stands, and reads until the answer is complete or the connection ends. */
async function exchange(base: string | undefined, request: string): Promise<void> {
  const { hostname, port } = new URL(base ?? '')
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.end(Buffer.from(request, 'latin1'))
  socket.resume()
  await once(socket, 'close')
}

const headerBytes = 15_000
const bodyOf = (fields: object) => JSON.stringify(fields)

const withHeader = (
  base: string | undefined,
  line: string,
  header: string,
  { others = [], body = '' }: { others?: readonly string[]; body?: string } = {},
) => {
  return (text: string) => {
    const lines = [`${line} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...others, `${header}: ${text}`]
    const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
    return exchange(base, `${[...lines, ...length].join('\r\n')}\r\n\r\n${body}`)
  }
}

const header = (name: string, send: (text: string) => Promise<unknown>, ...begins: string[]): Place => ({
  ...{ name, send, begins: ['', ...begins], length: headerBytes },
})

/** In an address a character may become three, and an address is bounded as a header is. */
const encoded = (name: string, send: (text: string) => Promise<unknown>, ...begins: string[]): Place => ({
  ...header(name, (text) => send(encodeURIComponent(text)), ...begins),
  length: headerBytes / 3,
})

const bearer = `Authorization: Bearer ${service.key}`
const json = 'Content-Type: application/json'
const email = bodyOf(validBody())
const post = (name: string, others: readonly string[] = [bearer, json]) =>
  withHeader(service.urls.api, 'POST /v1/email', name, { others, body: email })

const apiHeaders: Place[] = [
  header('API, Content-Type', post('Content-Type', [bearer]), 'application/json', 'application/json;charset=utf-8'),
  header('API, Authorization', post('Authorization', [json]), 'Bearer ', 'Bearer pst_'),
  header('API, Idempotency-Key', post('Idempotency-Key')),
  header('API, Content-Encoding', post('Content-Encoding')),
  header('API, traceparent', post('traceparent'), '00-'),
  header('API, X-Forwarded-For', post('X-Forwarded-For')),
  header('API, Expect', post('Expect'), '100-continue'),
  encoded('API, path', (text) =>
    exchange(service.urls.api, `GET /v1/${text} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
  ),
  header('API, any header name', (text) =>
    exchange(service.urls.api, `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${text}: x\r\n\r\n`),
  ),
]

const field = (name: string, fields: (text: string) => object, ...begins: string[]): Place => ({
  name: `API, ${name}`,
  send: (text) => service.post(bodyOf(fields(text)).slice(0, 16_384)).catch(() => {}),
  begins: ['', ...begins],
  length: 7000,
})
const apiFields: Place[] = [
  field('to', (to) => validBody({ to }), 'a', 'a@'),
  field('type', (type) => validBody({ type })),
  field('url', (url) => validBody({ url }), `${appOrigin}/?token=`, `${appOrigin}/`, 'https://', 'acme://', 'acme:'),
  field('expiresAt', (expiresAt) => validBody({ expiresAt }), '2099-01-01T00:00:00.'),
  field('names', (text) => validBody({ type: 'organisation_invite', organisationName: text, inviterName: text })),
  {
    name: 'API, body',
    send: (text) => service.post(text).catch(() => {}),
    begins: ['', '{"a":', '{"a":"', '['],
    length: headerBytes,
  },
]

const manage = (name: string, line: string, body: (text: string) => object, ...begins: string[]): Place => ({
  name: `management, ${line} ${name}`,
  send: (text) => {
    const [method = 'POST', path = '/'] = line.split(' ')
    const headers = { authorization: `Bearer ${anyToken()}`, 'content-type': 'application/json' }
    return fetch(`${service.urls.console}${path}`, { method, headers, body: bodyOf(body(text)) }).then((r) =>
      r.arrayBuffer(),
    )
  },
  begins: ['', ...begins],
  length: 25_000,
})
/** Settings of more than 16 KiB are not read: `fields` share them. */
const settingBytes = 15_000
const setting = (name: string, settings: (text: string) => object, ...begins: string[]): Place => {
  const body = (text: string) => ({ type: 'magic_link', settings: settings(text) })
  const fields = bodyOf(settings('¶')).split('¶').length - 1
  return {
    ...manage(name, 'POST /v1/apps/acme/preview', body, ...begins),
    length: Math.floor(settingBytes / fields),
  }
}
const management: Place[] = [
  setting('allowedUrls', (text) => ({ allowedUrls: [text] }), 'https://', 'https://a.', `${appOrigin}/`, 'https://*.'),
  setting('appSchemes', (text) => ({ appSchemes: [text] }), 'acme', 'acme:', 'acme://', 'acme://a/'),
  setting('name', (text) => ({ name: text })),
  setting('sender', (text) => ({ from: { name: text, address: `${text}@a.test` } })),
  setting('addresses', (text) => ({ replyTo: text, envelopeFrom: text, supportContact: text }), 'a@'),
  setting(
    'branding',
    (text) => ({ branding: { logoUrl: text, accentColour: text, addressLine: text } }),
    'https://',
    '#',
  ),
  setting(
    'destinations',
    (text) => ({ linkDestinations: { magic_link: text }, fallbackUrl: text, newEmailUrl: text }),
    'https://',
    'acme://',
  ),
  {
    ...manage('url', 'POST /v1/apps/acme/check-link', (url) => ({ url }), `${appOrigin}/`, 'acme://'),
    length: 9999,
  },
  manage('to', 'POST /v1/emails/find', (to) => ({ to }), 'a@'),
  manage('expiresAt', 'POST /v1/tokens', (expiresAt) => ({ name: 'x', role: 'reader', expiresAt })),
  ...(['cursor', 'since', 'recipient', 'app', 'key', 'state'] as const).map((query) =>
    encoded(
      `management, ?${query}`,
      (text) =>
        fetch(`${service.urls.console}/v1/emails?${query}=${text}`, {
          headers: { authorization: `Bearer ${anyToken()}` },
        }).then((r) => r.arrayBuffer()),
      'cu_',
    ),
  ),
  encoded('management, path', (text) =>
    fetch(`${service.urls.console}/v1/apps/${text}`, {
      headers: { authorization: `Bearer ${anyToken()}` },
    }).then((r) => r.arrayBuffer()),
  ),
  ...['If-Match', 'If-None-Match', 'Content-Type'].map((name) =>
    header(
      `management, ${name}`,
      (text) =>
        withHeader(service.urls.console, 'PATCH /v1/apps/acme', name, {
          others: [`Authorization: Bearer ${anyToken()}`],
          body: '{}',
        })(text),
      '"',
      'application/json',
    ),
  ),
]

/** @param names the fields that hold the text; `name=value` has that value */
const form = (path: string, names: readonly string[], ...begins: string[]): Place => ({
  name: `console, ${path} ${names.join(' ')}`,
  send: (text) =>
    fetch(`${dev.urls.console}${path}`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams(names.map((name) => [name.split('=')[0] ?? '', name.split('=')[1] ?? text])),
      redirect: 'manual',
    }).then((r) => r.arrayBuffer()),
  begins: ['', ...begins],
  length: Math.min(9000, Math.floor(settingBytes / names.filter((name) => !name.includes('=')).length)),
})
const consolePlaces: Place[] = [
  form('/apps/acme/links/add', ['entry'], 'https://', `${appOrigin}/`),
  form('/apps/acme/links/add', ['entry', 'kind=appSchemes'], 'acme://'),
  form('/apps/acme/links/test', ['url'], `${appOrigin}/`, 'acme://'),
  form(
    '/apps/acme/links/hosted',
    ['fallbackUrl', 'newEmailUrl', 'linkDestinations-magic_link', 'hostedLinks'],
    'https://',
  ),
  form('/apps/acme/look', ['logoUrl', 'accentColour', 'addressLine', 'supportContact', 'locale'], 'https://'),
  form('/apps/acme/settings', ['name', 'from-name', 'from-address', 'replyTo', 'daily', 'version']),
  form('/apps/acme/keys', ['name', 'expires']),
  form('/apps/acme/test-email', ['to', 'type'], 'a@'),
  form('/new-app', ['name', 'slug', 'from', 'allowedUrls'], 'https://'),
  form('/find', ['q'], 'a@', 'em_', 'req_', 'key_', 'pst_'),
  ...['Cookie', 'Accept', 'User-Agent', 'Origin', 'Sec-Fetch-Site', 'Referer', 'X-Forwarded-For'].map((name) =>
    header(`console, ${name}`, withHeader(service.urls.console, 'GET /apps', name), 'postern=', 'text/html'),
  ),
  header(
    'console, Host',
    (text) => exchange(service.urls.console, `GET / HTTP/1.1\r\nHost: ${text}\r\nConnection: close\r\n\r\n`),
    'postern.localhost',
    'localhost:',
  ),
  encoded(
    'console, ?to',
    (text) => fetch(`${service.urls.console}/sign-in?to=${text}`).then((r) => r.arrayBuffer()),
    '/',
  ),
  {
    name: 'console, code',
    send: (text) =>
      fetch(`${service.urls.console}/sign-in`, {
        method: 'POST',
        headers: { 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ code: text, to: text }),
      }).then((r) => r.arrayBuffer()),
    begins: ['', 'psl_'],
    length: 9000,
  },
]

const elsewhere: Place[] = [
  encoded('links, path', (text) =>
    exchange(service.urls.links, `GET /acme/${text} HTTP/1.1\r\nHost: links.acme.test\r\nConnection: close\r\n\r\n`),
  ),
  encoded('links, POST path', (text) =>
    exchange(service.urls.links, `POST /acme/${text} HTTP/1.1\r\nHost: links.acme.test\r\nConnection: close\r\n\r\n`),
  ),
  encoded('ops, path', (text) =>
    exchange(service.urls.ops, `GET /${text} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
  ),
]

const characters = [...' \ta0.A/\\:;,=?#&%@-_+*"\'<([{~!|é']
const pairs = ['a.', '/.', '//', '%2', '%25', ': ', '; ', '&=', '.a@', '[]', '..', 'a ', '\t ', '-a', '://', '0.']
const ends = ['', '!', '?', ' x', '\\']

const textsOf = ({ begins, length }: Place, share: number): string[] =>
  begins.flatMap((begin) =>
    [...characters, ...pairs].flatMap((unit) =>
      ends.map((end) => begin + unit.repeat(Math.floor((length * share - begin.length) / unit.length)) + end),
    ),
  )

/** The processor time of this thread, in milliseconds, that one request takes. */
async function costOf(send: Place['send'], text: string): Promise<number> {
  const before = process.threadCpuUsage()
  await send(text)
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Less is no stall, whatever it grows by: it is what some valid requests cost. */
const stallMs = 8
const tries = 8
/** Twice the length: 2 if the cost is linear, 4 if it is quadratic. */
const growthMax = 3
/**
 * A quadratic cost that grows more than growthMax from the half to the whole, with whatever does not grow
 * beside it, has at least doubled from the quarter to the half. A step, as when an answer no longer fits into
 * one write, has not.
 */
const growthBeforeMin = 1.7
const foundMax = 2

/** The costs of a text and of its first half and quarter; null as soon as they are those of no stall. */
async function stallOf(send: Place['send'], texts: readonly string[]): Promise<string | null> {
  const least = texts.map(() => Number.POSITIVE_INFINITY)
  for (let n = 0; n < tries; n++) {
    // In turns, so that the collection of garbage meets all of them.
    for (const [index, text] of texts.entries()) least[index] = Math.min(least[index] ?? 0, await costOf(send, text))
    const [whole = 0, half = 0, quarter = 0] = least
    if (whole < stallMs || whole <= growthMax * half || half <= growthBeforeMin * quarter) return null
  }
  return least.map((ms) => `${ms.toFixed(1)} ms`).join(', ')
}

async function stallsOf(place: Place): Promise<string[]> {
  const [wholes, halves, quarters] = [textsOf(place, 1), textsOf(place, 0.5), textsOf(place, 0.25)]
  const found: string[] = []
  for (const [index, text] of wholes.entries()) {
    if (found.length === foundMax || (await costOf(place.send, text)) < stallMs) continue
    const costs = await stallOf(place.send, [text, halves[index] ?? '', quarters[index] ?? ''])
    if (costs !== null) found.push(`${JSON.stringify(text.slice(0, 30))}…: ${costs}`)
  }
  return found
}

for (const place of [...apiHeaders, ...apiFields, ...management, ...consolePlaces, ...elsewhere])
  test(`no text stalls the service: ${place.name}`, async () => {
    assert.deepEqual(await stallsOf(place), [])
  })

test('a place whose cost grows with the square of its text is found', async () => {
  const square: Place = {
    name: 'a pattern',
    begins: [''],
    length: headerBytes,
    send: async (text) => / +$/.test(text),
  }
  assert.equal((await stallsOf(square)).length, foundMax)
})
