import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTags } from './tags.ts'

const read = (text: string) => {
  const tags = readTags(text)
  return tags && [...tags].map(([name, value]) => `${name}: ${value}`)
}

test('tags are read in their order, whatever white space surrounds them', () => {
  assert.deepEqual(read('v=DKIM1; k=rsa; p=abc='), ['v: DKIM1', 'k: rsa', 'p: abc='])
  assert.deepEqual(read(' v = DKIM1 ;\tp =\n;; '), ['v: DKIM1', 'p: '])
  assert.deepEqual(read('V=1;v=2;a_b2=x y'), ['V: 1', 'v: 2', 'a_b2: x y'], 'capitals count')
  assert.deepEqual(read(''), [])
})

test('text of another form and a repeated tag are refused', () => {
  const long = 'a'.repeat(31)
  assert.deepEqual(read(`${long}=x`), [`${long}: x`])
  for (const text of ['v', '=x', 'v=1; x', '1v=x', '_v=x', 'v-x=1', 'v x=1', `${long}a=x`, 'v=1;v=1'])
    assert.equal(read(text), null, text)
})
