import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../domain/id.ts'
import { nameSuperseding, RecentEmails } from './recent-emails.ts'

const ids = Array.from({ length: 10 }, (_, n) => `eml_${n}` as EmailId)

test('the last eight emails of a name are remembered, in their order', () => {
  const recent = new RecentEmails()
  for (const id of ids) {
    recent.add('ada reset', id)
    recent.add(null, id)
  }
  recent.add('bob reset', ids[0] as EmailId)
  assert.deepEqual(recent.find('ada reset'), ids.slice(2))
  assert.deepEqual(recent.find('bob reset'), ids.slice(0, 1))
  assert.deepEqual([recent.find('ada verify'), recent.find(null)], [[], []])
})

test('a name is made of the address and the kind of link; a long link has none', () => {
  const name = (address: string, supersedeKey: string | null) => nameSuperseding({ address }, { supersedeKey })
  const names = [name('ada', 'reset'), name('bob', 'reset'), name('ada', 'verify'), name('ada', 'r'.repeat(256))]
  assert.equal(new Set(names).size, 4)
  assert.ok(!names.includes(null))
  assert.equal(name('ada', 'reset'), names[0])
  assert.deepEqual([name('ada', 'r'.repeat(257)), name('ada', null)], [null, null])
})
