import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newOutput, print, record, table } from './output.ts'

/** C0, DEL, C1, and what changes the direction or ends the line. */
const controls = [
  ...Array.from({ length: 32 }, (_, code) => code),
  ...Array.from({ length: 33 }, (_, n) => 0x7f + n),
  ...[0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069],
]
  .map((code) => String.fromCharCode(code))
  .filter((character) => character !== '\n' && character !== '\r')
const hostile = `a${controls.join('')}\ud800b`

const write = (json: boolean, document: unknown, show: () => string) => {
  let written = ''
  const out = (text: string) => {
    written += text
  }
  print(newOutput({ json, out, err: out }), document, show)
  return written
}

const obeyed = /[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

test('no cell and no line has a character that a terminal obeys', () => {
  const shown = write(false, null, () =>
    [hostile, table(['name'], [[hostile], [null], [7]]), record([['name', hostile]])].join('\n'),
  )
  assert.doesNotMatch(shown, obeyed)
  assert.ok(shown.isWellFormed())
})

test('a line break in a cell makes no row', () => {
  assert.equal(table(['name'], [['a\r\nroot  admin']]), 'name\na root  admin')
  assert.equal(record([['name', 'a\n\nb']]), 'name  a b')
})

test('JSON stays the same document, and a terminal may show it', () => {
  const document = { [hostile]: [hostile, 'é \u{1f600}'] }
  const shown = write(true, document, () => '')
  assert.doesNotMatch(shown, obeyed)
  assert.ok(shown.includes('\\u009b'))
  assert.deepEqual(JSON.parse(shown), document)
})

test('a table fits 100 columns: ids are shortened, and the widest columns are wrapped without loss', () => {
  const reply = 'a reply of many words '.repeat(12).trim()
  const id = `em_${'0'.repeat(26)}`
  const shown = table(
    ['id', 'count', 'a_head_of_many_words_and_underscores', 'reply'],
    [
      [id, 1234, 'x', reply],
      ['key', 5, 'z'.repeat(70), null],
    ],
  )
  const lines = shown.split('\n')
  assert.ok(
    lines.every((line) => line.length <= 100),
    shown,
  )
  assert.match(shown, /^em_0{18} {2,}1234 {2}x/m)
  assert.equal(shown.match(/\bmany\b/g)?.length, 12)
  assert.equal(shown.match(/z/g)?.length, 70)
  assert.equal(table(['a', 'b'], [['x', 2]]), 'a  b\nx  2')
})

test('a table lines up, and breaks between characters, also where a character is two columns wide', () => {
  const lines = table(
    ['name', 'n'],
    [
      ['日本語', 1],
      ['🦊', 2],
      ['é', 3],
    ],
  ).split('\n')
  assert.deepEqual(lines, ['name    n', '日本語  1', '🦊      2', 'é       3'])
  const broken = table(['name', 'other'], [['🦊'.repeat(30), 'x'.repeat(60)]])
  assert.ok(broken.isWellFormed())
  assert.deepEqual(broken.match(/🦊/g)?.length, 30)
})
