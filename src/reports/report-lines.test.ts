import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBlocks, readLines } from './report-lines.ts'

test('a field has its first value, with the lines that continue it, up to 1000 characters', () => {
  const text = `Subject: a\nSubject: b\nStatus : 5.1.1\r\n\t (gone)\nX-Other: c\n d\nFrom: ${`\n ${'x'.repeat(299)}`.repeat(9)}`
  const [header, ...blocks] = readBlocks(text)
  assert.equal(header.get('subject'), 'a')
  assert.equal(header.get('status'), '5.1.1 (gone)')
  assert.equal(header.get('from')?.length, 1000)
  assert.deepEqual([...header.keys()], ['subject', 'status', 'from'])
  assert.deepEqual(blocks, [])
})

test('empty lines separate blocks; blocks without a known field are left out', () => {
  const text = '\nAction: failed\n\n\r\nText: x\n\n  \nAction: delayed\nStatus: 4.0.0'
  const blocks = readBlocks(text).map((block) => Object.fromEntries(block))
  assert.deepEqual(blocks, [{}, { action: 'failed' }, { action: 'delayed', status: '4.0.0' }])
})

test('the number of blocks is bounded', () => {
  assert.ok(readBlocks('Action: failed\n\n'.repeat(3000)).length <= 1010)
})

test('the number of lines is bounded, far above that of a report of the largest size', () => {
  const text = (lines: number) => `\n${'x\n'.repeat(lines)}Action: failed\n`
  assert.equal(readBlocks(text(512 * 1024)).length, 1)
  assert.equal(readBlocks(text((512 * 1024) / 76)).length, 2)
})

test('a line break ends a line, and begins none at the end of the text', () => {
  for (const [text, lines] of [
    ['', []],
    ['a', ['a']],
    ['a \r\n', ['a']],
    ['a\n\nb\n', ['a', '', 'b']],
  ] as const)
    assert.deepEqual([...readLines(text)], lines)
})
