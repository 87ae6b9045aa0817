/**
 * The cost of a hook: signed calls of Supabase with 3 KB each, beside the same emails asked for at the API,
 * on one service. No worker runs.
 */
import { parseConfig } from '../src/config/parse-config.ts'
import { hashDeliveryKey, newHookSecret } from '../src/domain/app/delivery-key.ts'
import { defaultLimits } from '../src/domain/app/limit.ts'
import type { AppSettings } from '../src/domain/app/settings.ts'
import { supabase } from '../src/domain/hooks/supabase.ts'
import { sealHookSecret } from '../src/store/crypto/hook-secret.ts'
import { operator } from '../test/support/operator.ts'
import { newSender, testSettings } from '../test/support/service.ts'
import type { Scope } from '../test/support/temporary.ts'
import type { HookTarget } from './http-load.ts'
import type { LoopResult } from './loop.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { type Bed, engines, makeBed, startLoader, startPostern, subjectOf, useStore } from './processes.ts'

const roundMs = 3000
const rounds = 5
const clients = 64
const apps = 20

const settings: AppSettings = {
  ...testSettings,
  limits: { ...defaultLimits, keyPerMinute: 6_000_000, daily: 1_000_000_000 },
  hooks: { supabase: { pages: { default: 'https://app.acme.test/auth/magic' } } },
}

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope, { anyAnswer: true })
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  let serial = 0
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    const hooks = await connectApps(bed)
    const service = await startPostern(scope, bed, {
      POSTERN_ROLES: 'api,hooks',
      POSTERN_HOOKS_LISTEN: '127.0.0.1:0',
    })
    const hooksPort = Number(new URL(service.hooks ?? 'http://none:1').port)
    const ways = [
      { name: 'POST /v1/email', answer: '202', order: { ports: [service.port], keys: bed.keys } },
      { name: 'a hook of Supabase', answer: '200', order: { ports: [hooksPort], keys: [], hooks } },
    ]
    const results = new Map<string, LoopResult[]>(ways.map(({ name }) => [name, []]))
    const contenders = ways.map(
      ({ answer, name, order }): Contender => ({
        name,
        round: async () => {
          serial += 10_100_003 // new recipients in each round
          const result = await load({ ...order, clients, ms: roundMs, rate: null, serial })
          if (Object.keys(result.answers).join() !== answer) throw new Error(JSON.stringify(result.answers))
          results.get(name)?.push(result)
          return result.perSecond
        },
      }),
    )
    const standings = await interleave(contenders, rounds)
    tables[`Accepted on ${engine} with ${clients} clients`] = standingsTable('way', standings)
    measured[engine] = { standings, results: Object.fromEntries(results) }
  }
  report('hooks', tables, measured)
}

/** Apps with a secret of Supabase each. */
const connectApps = (bed: Bed): Promise<HookTarget[]> =>
  useStore(bed, async (store) => {
    const { ring } = parseConfig(bed.env, 'command')
    const connect = async (_: unknown, index: number): Promise<HookTarget> => {
      const slug = `hooked-${index}`
      const { app } = await newSender({ store }, slug, settings)
      const secret = supabase.auth.kind === 'signed' ? (supabase.auth.makeSecret?.() ?? '') : ''
      const hash = hashDeliveryKey(newHookSecret())
      const sealed = sealHookSecret(ring, { hash }, secret)
      const key = { app: app.id, hash, name: slug, expiresAt: null, hook: 'supabase', sealed } as const
      await store.createKey(key, operator)
      return { path: `/supabase/${slug}`, secret }
    }
    return Promise.all(Array.from({ length: apps }, connect))
  })
