import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table } from './parts.ts'

test('on a phone, a table of more than two columns becomes cards, one of two stays a table', () => {
  const isCards = (...heads: string[]) => table('Keys', heads, [heads]).text.includes('class="cards"')
  assert.equal(isCards('Name', 'State'), false)
  assert.equal(isCards('Name', 'State', 'Since'), true)
})

test('the column of buttons has no head that is seen, and is marked as the last', () => {
  const { text } = table('Keys', ['Name', 'Uses', ''], [['a', 7, 'Revoke']], { numbers: [1] })
  assert.match(text, /<span class="hidden">Actions<\/span>/)
  assert.match(text, /<td role="cell" class="number" data-head="Uses">7<\/td>/)
  assert.match(text, /<td role="cell" class="last">Revoke<\/td>/)
})
