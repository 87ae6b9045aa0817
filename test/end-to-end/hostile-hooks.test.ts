/**
 * Hostile bodies from a caller that has the secret: every answer is one that the auth server can read.
 * POSTERN_FUZZ sets how many each system sends (2,000).
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { HookSystem } from '../../src/domain/hooks/hook-system.ts'
import { systems } from '../../src/domain/hooks/systems.ts'
import { type Random, randomFrom } from '../support/generator.ts'
import { sign, startHooks } from '../support/hooks.ts'

const bodiesPerSystem = Number(process.env.POSTERN_FUZZ ?? 2000)
const atOnce = 50
const { service, connect, postRaw } = await startHooks(
  { after },
  { roles: new Set(['api', 'hooks'] as const) },
)

const values = [
  ...[
    'null',
    'true',
    '-0',
    '1e999',
    '[]',
    '{}',
    '""',
    '" "',
    '"\\ud800"',
    '"\\u0000"',
    '[[[[[[[[[[]]]]]]]]]]',
  ],
  ...['"a@b@c"', '"@"', '"https://"', '"https://auth.acme.test/?a=b&c=%zz"', '"javascript:alert(1)"'],
  ...[
    '{"__proto__":{"kind":"notice"}}',
    '{"constructor":1}',
    '"Ã"',
    `"${'x'.repeat(9000)}"`,
    '9007199254740993',
  ],
]
const pieces = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  '\\u',
  '\n',
  '\u0000',
  '\ufeff',
  '\u202e',
  '😀',
  ...values,
]

/** A body of a kind with some of it replaced: whole values, or places of its text. */
function spoil(system: HookSystem, random: Random): string {
  const one = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  let text = JSON.stringify(system.sample(one(Object.keys(system.kinds))))
    .replaceAll('example.com', 'acme.test')
    .replaceAll('someone', `s${Math.floor(random() * 1e6)}`)
  for (let change = Math.floor(random() * 4); change >= 0; change--) {
    const found = [...text.matchAll(/"(?:[^"\\]|\\.)*"(?!:)|\d+|null/g)]
    const place = random() < 0.7 && found.length > 0 ? one(found) : null
    const [start, length] =
      place === null
        ? [Math.floor(random() * text.length), random() < 0.5 ? 0 : 3]
        : [place.index, place[0].length]
    text = text.slice(0, start) + one(place === null ? pieces : values) + text.slice(start + length)
  }
  return text
}

for (const [n, system] of systems.entries())
  test(`${system.title}: ${bodiesPerSystem} hostile bodies, and no answer of 500`, async (t) => {
    const { secret } = await connect(system.name)
    const random = randomFrom(n + 1)
    const statuses: Record<string, number> = {}
    const bodies = Array.from({ length: bodiesPerSystem }, () => spoil(system, random))
    for (let from = 0; from < bodies.length; from += atOnce)
      await Promise.all(
        bodies.slice(from, from + atOnce).map(async (body) => {
          const headers = sign(system.name, secret, body, service.store.now())
          const { status, json } = await postRaw(`/${system.name}/acme`, body, headers)
          assert.ok(status === 200 || (status >= 400 && status < 500 && status !== 401), `${status} ${body}`)
          assert.equal(typeof json, 'object')
          statuses[status] = (statuses[status] ?? 0) + 1
        }),
      )
    t.diagnostic(JSON.stringify(statuses))
    assert.ok(!service.log.some((line) => line.includes('"level":"error"')))
  })
