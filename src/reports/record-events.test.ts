import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from '../../test/support/service.ts'
import { findEventService } from '../services/services.ts'
import { recordEvents } from './record-events.ts'

test('a call with many reports, of which none names an email, lets other work go on between them', async (t) => {
  const { store } = await startTestService(t, { roles: new Set(['api'] as const) })
  let turns = 0
  let next: NodeJS.Immediate
  const turn = () => {
    turns += 1
    next = setImmediate(turn)
  }
  next = setImmediate(turn)
  t.after(() => clearImmediate(next))
  const events = Array.from({ length: 200 }, () => ({ kind: 'bounced', recipient: 'ada@example.com' }))
  const generic = findEventService('generic') ?? assert.fail()
  const deps = { store, emit: () => {}, sealRecipient: assert.fail }
  const results = await recordEvents(deps, generic, [...events, { kind: 'unheard of' }])
  assert.deepEqual(results, { unmatched: 200, ignored: 1 })
  assert.ok(turns >= 10, `${turns}`)
})
