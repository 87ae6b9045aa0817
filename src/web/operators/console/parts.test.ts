import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table } from './parts.ts'

test('on a phone, a table of more than two columns becomes cards, one of two stays a table', () => {
  const isCards = (...heads: string[]) => table('Keys', heads, [heads]).text.includes('class="cards"')
  assert.equal(isCards('Name', 'State'), false)
  assert.equal(isCards('Name', 'State', 'Since'), true)
})
