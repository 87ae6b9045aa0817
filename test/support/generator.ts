/**
 * Generated requests: valid ones, ones with a fault or two in the grammar of links, addresses or JSON,
 * and random bytes. The same seed gives the same requests.
 */
import { validBody } from './service.ts'

export type Random = () => number

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

const schemes = ['https', 'HTTPS', 'http', 'acme', 'ACME', 'javascript', 'data', 'file', 'ftp', 'https ', '']
const slashes = ['://', '://', '://', ':', ':/', ':///', ':\\\\', ':/\\', '//', ':// ']
const hosts = [
  'app.acme.test',
  'app.acme.test',
  'APP.acme.test',
  'localhost',
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  'app.acme.test.evil.test',
  'evil.test',
  'app.acme.test@evil.test',
  'evil.test\\@app.acme.test',
  'app.acme.test%00.evil.test',
  'app。acme。test',
  'аpp.acme.test',
  'app.acme.test.',
  '[::1]',
  '',
]
const ports = ['', '', '', ':443', ':8443', ':0', ':65536', ':', ':4a']
const paths = ['', '/', '/auth', '/auth/../x', '/%2e%2e/x', '/a//b', '/a\\b', '/\t', '/ü', '/%', '/a;b', '/{x}']
const queries = [
  '?token=abc',
  '?token=abc',
  '?token=',
  '?token=%20',
  '?token=a&token=b',
  '?token=a&x=1',
  '?Token=a',
  '?token=%ff',
  '?token=%00',
  '?token=a;x=1',
  '?%74oken=a',
  '?token=a=b',
  '??token=a',
  '',
]
const fragments = ['', '', '#', '#x', '#?token=b']

const randomLink = (random: Random): string =>
  [schemes, slashes, hosts, ports, paths, queries, fragments].map((part) => pick(random, part)).join('')

const locals = ['ada', 'a.b', 'a+b', '"a b"', 'a..b', '.a', 'ä', 'a'.repeat(65), 'a\r\nBcc: x', 'a,b', 'a@b', '']
const domains = ['example.com', 'EXAMPLE.com', 'exämple.com', 'localhost', '[127.0.0.1]', 'a..b', '-a.com', 'a.b>', '']

const randomAddress = (random: Random): string =>
  `${pick(random, locals)}${pick(random, ['@', '@', '@', 'report', ''])}${pick(random, domains)}`

const odd: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '\u202e',
  [],
  {},
  ['a'],
  { toString: 'a' },
  'x'.repeat(300),
  '<b>&"\'',
  'https://evil.test',
]
const fields = ['to', 'type', 'url', 'expiresAt', 'organisationName', 'org_name', 'inviterName', '__proto__', 'x']
const types = ['magic_link', 'email_verification', 'password_reset', 'organisation_invite', 'MAGIC_LINK', 'toString']
const times = [
  '2099-01-01T00:00:00Z',
  '2099-01-01',
  '2099-02-30T00:00:00Z',
  '20990101T000000+01',
  '1970-01-01T00:00:00Z',
  'x',
]

function fieldsOf(random: Random, serial: number): Record<string, unknown> {
  const body = validBody({ to: `fuzz${serial}@example.com` })
  if (random() < 0.3) return body
  if (random() < 0.5) body.url = randomLink(random)
  if (random() < 0.3) body.to = randomAddress(random)
  if (random() < 0.3) body.type = pick(random, types)
  if (random() < 0.2) body.expiresAt = pick(random, times)
  if (random() < 0.2) body.organisationName = pick(random, odd)
  if (random() < 0.3) {
    const value = pick(random, odd)
    Object.defineProperty(body, pick(random, fields), {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  if (random() < 0.1) delete body[pick(random, fields)]
  return body
}

/** Changes up to eight bytes of a body, and may cut it short. */
function damage(random: Random, bytes: Buffer): Buffer {
  for (let i = 0; i < 8 * random(); i++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
  return random() < 0.2 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes
}

export function randomBody(random: Random, serial: number): Buffer {
  const kind = random()
  if (kind < 0.05) return Buffer.from(Array.from({ length: 200 * random() }, () => Math.floor(random() * 256)))
  const bytes = Buffer.from(JSON.stringify(fieldsOf(random, serial)))
  return kind < 0.25 ? damage(random, bytes) : bytes
}
