/**
 * Hostile bodies from a caller that has the secret: every answer is one that the auth server can read.
 * POSTERN_FUZZ sets how many each system sends (2,000).
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AuthHook } from '../../src/domain/auth-hooks/auth-hook.ts'
import { postingSystems as systems } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { type AuthHookName, sign, startAuthHooks } from '../support/auth-hooks.ts'
import { type Random, randomFrom } from '../support/generator.ts'
import { countStatuses, spoilJson } from '../support/hostile-json.ts'

const bodiesPerSystem = Number(process.env.POSTERN_FUZZ ?? 2000)
const { service, connect, postRaw } = await startAuthHooks(
  { after },
  { roles: new Set(['api', 'auth-hooks'] as const) },
)

const values = ['"https://"', '"https://auth.acme.test/?a=b&c=%zz"', '"javascript:alert(1)"']

/** A body of any kind of the system, spoilt. */
function spoil(system: AuthHook, random: Random): string {
  const kinds = Object.keys(system.kinds)
  const text = JSON.stringify(system.sample(kinds[Math.floor(random() * kinds.length)] ?? ''))
    .replaceAll('example.com', 'acme.test')
    .replaceAll('someone', `s${Math.floor(random() * 1e6)}`)
  return spoilJson(text, random, values)
}

for (const [n, system] of systems.entries())
  test(`${system.title}: ${bodiesPerSystem} hostile bodies, and no answer of 500`, async (t) => {
    const server = system.name as AuthHookName
    const { secret } = await connect(server)
    const random = randomFrom(n + 1)
    const bodies = Array.from({ length: bodiesPerSystem }, () => spoil(system, random))
    const statuses = await countStatuses(bodies, async (body) => {
      const headers = sign(server, secret, body, service.store.now())
      const { status, json } = await postRaw(`/${system.name}/acme`, body, headers)
      assert.ok(status === 200 || (status >= 400 && status < 500 && status !== 401), `${status} ${body}`)
      assert.equal(typeof json, 'object')
      return status
    })
    t.diagnostic(JSON.stringify(statuses))
    assert.ok(!service.log.some((line) => line.includes('"level":"error"')))
  })
