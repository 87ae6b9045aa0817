/** Reports that nobody wrote: the reader answers all of them, and the work is bounded by the length. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { reportMax } from '../domain/bounds.ts'
import { readReport } from './read-report.ts'
import { judgeReport } from './record-report.ts'

const folder = new URL('../../test/corpus/reports/', import.meta.url)
const samples = readdirSync(folder).map((name) => readFileSync(new URL(name, folder)))

const cut = (bytes: Buffer, from: number, length: number) =>
  Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + length)])
const double = (bytes: Buffer, from: number, length: number) =>
  Buffer.concat([bytes.subarray(0, from + length), bytes.subarray(from)])
const flip = (bytes: Buffer, from: number, length: number) =>
  Buffer.from(bytes.map((byte, at) => (at === from ? byte ^ (1 << (length % 8)) : byte)))
const repeat = (bytes: Buffer, from: number, length: number) =>
  Buffer.concat([bytes.subarray(0, from), ...Array(length).fill(bytes.subarray(from, from + 40))])

const change = fc.tuple(fc.constantFrom(cut, double, flip, repeat), fc.nat(2000), fc.nat(200))

test('reports that are cut, doubled, flipped and repeated are read without an error', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...samples),
      fc.array(change, { minLength: 1, maxLength: 6 }),
      async (sample, changes) => {
        const bytes = changes.reduce(
          (changed, [make, from, length]) => make(changed, from % (changed.length + 1), length),
          sample,
        )
        const report = await readReport(bytes, null)
        assert.ok(report.rows.length <= 50)
        const finding = judgeReport(report, () => true)
        if (!('reply' in finding)) return
        assert.ok(finding.reply.text.length <= 300)
        assert.doesNotMatch(finding.reply.text, /[^@\s]@[\w-]|:\/\/|[\r\n]/)
      },
    ),
    { seed: 4711, numRuns: 1500 },
  )
})

const fill = (text: string) => text.repeat(Math.ceil(reportMax / text.length))
const head = 'From: MAILER-DAEMON\nSubject: failure notice\n\n'
const row = 'Final-Recipient: rfc822; ada@example.com\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 gone\n\n'
const hostile: Readonly<Record<string, string>> = {
  'no @': fill('a'),
  'only @': fill('@'),
  'beginnings of references': fill('em_'),
  'almost references': fill('em_01k9zc3v7mabcdefghjkmnpqrs.012345678'),
  'line breaks': fill('\n'),
  'one line of prose': head + fill('550 5.1.1 '),
  headers: fill('From: a\n'),
  'folded lines': `Subject: ${fill('\n a')}`,
  'deep multipart': fill('--b\nContent-Type: multipart/mixed; boundary="b"\n\n'),
  'soft line breaks': fill('=\r\n'),
  commas: `X-Failed-Recipients: ${fill(',')}`,
  'lines of commas': head + fill(',\n'),
  rows: fill(row),
  'rows without recipient': fill('Original-Recipient: \n\n'),
  'a long diagnosis': row.replace('gone', fill('5.1.1.')),
  'a long address': row.replace('ada@', fill('a.')),
  'a long type': row.replace('smtp;', fill('smtp ')),
  spaces: head + fill(' '),
  'failed words': head + fill('will continu delaye unable t '),
  'no UTF-8': fill('\xff'),
}

/** Counts what patterns look at while a text is read. */
async function countPatterns(read: () => Promise<unknown>): Promise<{ longest: number; total: number }> {
  const { exec } = RegExp.prototype
  let [longest, total] = [0, 0]
  RegExp.prototype.exec = function (text) {
    longest = Math.max(longest, text.length)
    total += text.length
    return exec.call(this, text)
  }
  try {
    await read()
  } finally {
    RegExp.prototype.exec = exec
  }
  return { longest, total }
}

for (const [name, text] of Object.entries(hostile))
  test(`${name}: patterns see short texts, and no more of them than the report is long, times a constant`, async () => {
    const bytes = Buffer.from(text, 'latin1')
    const { longest, total } = await countPatterns(async () => judgeReport(await readReport(bytes, null), () => true))
    assert.ok(longest <= 6000, `${longest}`)
    assert.ok(total <= 30 * reportMax, `${total}`)
  })

test('a report is read up to its bound', async () => {
  const report = (spaces: number) => readReport(Buffer.from(`\n\n${' '.repeat(spaces)}\n\n${row}`), null)
  assert.equal((await report(reportMax - 3 * row.length)).rows.length, 1)
  assert.equal((await report(reportMax)).rows.length, 0)
})
