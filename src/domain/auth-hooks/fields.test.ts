import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { escapeQuery, present, readFields } from './fields.ts'

/** The result of one reading, or its issues as text. */
function read<T>(body: unknown, take: (fields: ReturnType<typeof readFields>) => T) {
  const fields = readFields(body)
  const result = fields.finish(take(fields))
  return result.ok ? result.value : result.issues.map(({ field, code }) => `${field} ${code}`)
}

test('a path leads through own properties of objects', () => {
  const at = (body: unknown, path: string) => read(body, ({ optional }) => optional(path))
  assert.equal(at({ a: { b: { c: 'x' } } }, 'a.b.c'), 'x')
  assert.equal(at(Object.create({ a: 'x' }), 'a'), undefined)
  assert.equal(at({ a: 'text' }, 'a.length'), undefined)
  for (const body of [null, 'a', 5, [], { a: null }, { a: '' }, { a: 'text' }, { a: { b: null } }, { 'a.b': 'x' }])
    assert.equal(at(body, 'a.b'), undefined, JSON.stringify(body))
})

test('text is not coerced, has a bound and is Unicode; lenient text is left out instead', () => {
  const faults: [unknown, string][] = [
    [5, 'not_a_string'],
    [true, 'not_a_string'],
    [['x'], 'not_a_string'],
    [{}, 'not_a_string'],
    ['x'.repeat(8193), 'too_long'],
    ['x\udc00', 'lone_surrogate'],
  ]
  for (const [value, code] of faults) {
    assert.deepEqual(
      read({ a: value }, ({ text }) => text('a')),
      [`a ${code}`],
    )
    assert.deepEqual(
      read({ a: value }, ({ optional }) => optional('a')),
      [`a ${code}`],
    )
    assert.equal(
      read({ a: value }, ({ lenient }) => lenient('a')),
      undefined,
    )
  }
  const most = 'x'.repeat(8192)
  assert.equal(
    read({ a: most }, ({ text }) => text('a')),
    most,
  )
  assert.equal(
    read({ a: most }, ({ lenient }) => lenient('a')),
    most,
  )
  assert.deepEqual(
    read({}, ({ text }) => text('a')),
    ['a required'],
  )
})

test('an issue says the path in its words too', () => {
  const fields = readFields({ a: { b: 5 } })
  fields.text('a.b')
  fields.text('a.c')
  fields.count('a.d', 9)
  const result = fields.finish(null)
  assert.deepEqual(result.ok ? [] : result.issues.map(({ message }) => message), [
    'a.b must be a JSON string.',
    'a.c is required.',
    'a.d is required.',
  ])
})

test('an address is read as the recipient of a request is', () => {
  const address = (value: unknown) => read({ to: value }, (fields) => fields.address('to'))
  assert.equal(address('Ana@EXAMPLE.com'), 'Ana@example.com')
  assert.deepEqual(address('Ana <ana@example.com>'), ['to forbidden_character'])
  assert.deepEqual(address(undefined), ['to required'])
})

test('values that are absent are left out', () => {
  assert.deepEqual(Object.keys(present({ a: undefined, b: '', c: 0, d: 'x' })), ['b', 'c', 'd'])
})

test('an escaped query has only characters that a link may have, and means the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (query) => {
      const escaped = escapeQuery(`https://a.test/?${query}`).slice('https://a.test/?'.length)
      assert.match(escaped, /^(?:(?!["<>\\])[\x21-\x7e])*$/)
      assert.equal(escapeQuery(`?${escaped}`), `?${escaped}`)
      if (!query.includes('%')) assert.equal(decodeURIComponent(escaped), query)
    }),
  )
})
