import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toCsv } from './csv.ts'

test('records become lines; quotes, commas and line ends stay within their cell', () => {
  const records = [
    { id: 'em_1', count: 2, reply: '550 5.1.1 "no", such user\r\nx', list: ['a', 'b'], none: null },
    { id: 'em_2', count: -3, reply: '', list: [], none: null },
  ]
  const text = toCsv(records)
  const lines = [
    'id,count,reply,list,none',
    'em_1,2,"550 5.1.1 ""no"", such user x","[""a"",""b""]",',
    'em_2,-3,,[],',
    '',
  ]
  assert.equal(text, lines.join('\r\n'))
  assert.equal(toCsv([]), '\r\n')
})

test('no text becomes a formula of a spreadsheet', () => {
  for (const reply of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1'])
    assert.equal(toCsv([{ reply }]).split('\r\n')[1], `'${reply}`)
  assert.match(toCsv([{ reply: '=HYPERLINK("https://x.test")' }]), /\n"'=HYPERLINK\(""https/)
})

test('a command writes plain line ends, and a cell that a semicolon would split is quoted', () => {
  assert.equal(toCsv([{ a: 'x;=1+1', b: 1 }], '\n'), 'a,b\n"x;=1+1",1\n')
})
