import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDkimRecord } from '../../domain/dns/dkim-record.ts'
import type { Answer } from '../../domain/dns/lookup.ts'
import type { SigningKeyRecord } from '../../store/signing-key-store.ts'
import { RecordWatch } from './record-watch.ts'

const key = (domain: string, state: SigningKeyRecord['state'] = 'active'): SigningKeyRecord => ({
  ...{ domain, state, selector: 'p1', algorithm: 'rsa', publicKey: 'MIIB', sealed: '' },
  ...{ createdAt: 0, changedAt: 0 },
})
const published: Answer = { kind: 'found', records: [formatDkimRecord('rsa', 'MIIB')] }

test('records that are gone are known after a look, which happens once an hour', async () => {
  const clock = { ms: 5 }
  const asked: string[] = []
  let lookups = 0
  let answer: Answer = published
  const watch = new RecordWatch({
    store: {
      listSigningKeys: async () => [
        ...[key('acme.org'), key('unknown.org'), key('pending.org', 'pending')],
        ...[key('retired.org', 'retired'), key('acme.test')],
      ],
    },
    newLookup: () => {
      lookups += 1
      return async (name) => {
        asked.push(name)
        return name.includes('unknown') ? { kind: 'unknown', reason: 'no answer' } : answer
      }
    },
    nowMs: () => clock.ms,
  })
  assert.deepEqual(watch.get(), [])
  await watch.look()
  const perLook = lookups / 2 // `get` had begun one
  assert.equal(perLook, 2, 'the queries of one domain leave those of the others')
  assert.deepEqual([...new Set(asked)], ['p1._domainkey.acme.org', 'p1._domainkey.unknown.org'])
  assert.deepEqual(watch.get(), [])
  answer = { kind: 'absent' }
  const before = asked.length
  clock.ms += 3_599_999
  watch.get()
  await new Promise(setImmediate)
  assert.equal(asked.length, before, 'not yet')
  clock.ms += 1
  watch.get()
  watch.get()
  await new Promise(setImmediate)
  assert.equal(asked.length, before + 2, 'once')
  const missing = watch.get()
  assert.deepEqual(
    missing.map(({ domain, selector }) => [domain, selector]),
    [['acme.org', 'p1']],
  )
  assert.match(missing[0]?.message ?? '', /publish it/)
})
