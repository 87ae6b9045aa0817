import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findValueFault, parseEnvFile } from './env-file.ts'

const parse = (text: string) => {
  const faults: string[] = []
  const variables = parseEnvFile(text, (line, why) => void faults.push(`${line}: ${why}`))
  return { variables, faults }
}

const read: readonly [text: string, value: string][] = [
  ['POSTERN_A=b', 'b'],
  ['\ufeffPOSTERN_A=b', 'b'],
  ['POSTERN_A=b\r\n', 'b'],
  ['# old\rPOSTERN_A=b\r', 'b'],
  [' \texport  POSTERN_A = b ', 'b'],
  ['POSTERN_A=b # a note', 'b'],
  ['POSTERN_A="b#c" # or "d"', 'b#c'],
  ["POSTERN_A='b c'", 'b c'],
  ['POSTERN_A=`b"c`', 'b"c'],
  ["POSTERN_A=smtp://u:p'w@h", "smtp://u:p'w@h"],
  ['POSTERN_A=k:AAA=', 'k:AAA='],
  ['POSTERN_A=', ''],
  ['POSTERN_A= # nothing', ''],
  ['POSTERN_A=first\nPOSTERN_A=b', 'b'],
]
for (const [text, value] of read)
  test(`read: ${JSON.stringify(text)}`, () =>
    assert.deepEqual(parse(text), { variables: { POSTERN_A: value }, faults: [] }))

const refused: readonly [text: string, why: RegExp][] = [
  ['\n\u200bPOSTERN_A=secret', /^2: there is an invisible character \(U\+200B\) beside POSTERN_A/],
  ['\u00a0POSTERN_A=secret', /U\+00A0/],
  ['\ufeff\ufeffPOSTERN_A=secret', /U\+FEFF/],
  ['POSTERN_A\u00a0=\u00a0secret', /U\+00A0/],
  ['POSTERN_A\u200d=secret', /U\+200D/],
  ['POSTERN_A=sec\u200bret', /^1: POSTERN_A has an invisible character \(U\+200B\) in its value/],
  ['POSTERN_A="secret\u00ad"', /U\+00AD/],
  ['POSTERN_A=sec\u202fret', /U\+202F/],
  ['POSTERN_A: secret', /^1: write POSTERN_A=VALUE/],
  ['set POSTERN_A=secret', /write POSTERN_A=VALUE/],
  ['POSTERN_A secret', /write POSTERN_A=VALUE/],
  ['POSTERN_A=pa#secret', /has a # in its value/],
  ['POSTERN_A=secret#', /has a # in its value/],
  ['POSTERN_A="secret', /begins with a quote \("\) that does not end/],
  ['POSTERN_A="secret"more', /has more after the quote/],
  ['POSTERN_A=secret"', /ends with a quote/],
  ['POSTERN_A="\'secret\'"', /has quotes around its value/],
  [Buffer.from('\ufeffPOSTERN_A=secret', 'utf16le').toString('utf8'), /^1: this is not text in UTF-8/],
  [Buffer.from('POSTERN_A=secret', 'utf16le').toString('utf8'), /^1: this is not text in UTF-8/],
  ['POSTERN_A=caf\ufffd', /not text in UTF-8/],
]
for (const [text, why] of refused)
  test(`refused, and not repeated: ${JSON.stringify(text)}`, () => {
    const { faults, variables } = parse(text)
    assert.equal(faults.length, 1)
    assert.match(faults[0] ?? '', why)
    assert.doesNotMatch(faults[0] ?? '', /secret/)
    assert.deepEqual(variables, {})
  })

test('lines of other programs are left alone, whatever is in them', () => {
  const text = '# POSTERN_A=b#c\n\nOTHER="more\nlines" #\nMY_POSTERN_A=x\nURL=$POSTERN_A\n\u200b\n'
  assert.deepEqual(parse(text), { variables: {}, faults: [] })
})

test('a variable of the process whose quotes were kept, or that has an invisible character, has a fault', () => {
  assert.match(findValueFault(' "a" ') ?? '', /quotes around its value/)
  assert.match(findValueFault("'a'") ?? '', /quotes around its value/)
  assert.match(findValueFault('a\u200b') ?? '', /U\+200B/)
  for (const value of ['', 'a', ' a ', '"a" b', 'k1:A=,k2:B=', 'k1:A=\nk2:B='])
    assert.equal(findValueFault(value), null, value)
})
