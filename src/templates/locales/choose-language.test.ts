import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { askedMax, chooseLanguage } from './choose-language.ts'
import { languageTags } from './language-files.ts'

const none = [
  ...['', ' ', '*', 'und', 'und-TW', 'x', 'i-klingon', 'tlh', 'sr', 'sr-Latn', 'sk', 'be', 'hi-Latn', 'az-Arab'],
  ...['de;q=0', ',,,', ';q=1', '-', 'de-', '<script>', 'de\u0000', 'zh-Latn', 'C', 'POSIX', 'undefined'],
]

const wanted: readonly (readonly [asked: string, tag: string])[] = [
  ...[
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE', 'de'],
    ['de_DE.UTF-8', 'de'],
    ['de_AT@euro', 'de'],
    ['de-CH-1996', 'de'],
  ],
  ...[
    ['en', 'en'],
    ['en-US', 'en-US'],
    ['en_US.UTF-8', 'en-US'],
    ['en-us', 'en-US'],
    ['en-Latn-US', 'en-US'],
    ['en-Latn', 'en'],
    ['en-AU', 'en'],
    ['en-GB', 'en'],
    ['fr-CA', 'fr'],
    ['es-419', 'es'],
    ['it-CH', 'it'],
  ],
  ...[
    ['zh', 'zh-Hans'],
    ['zh-CN', 'zh-Hans'],
    ['zh-SG', 'zh-Hans'],
    ['zh-Hans-TW', 'zh-Hans'],
  ],
  ...[
    ['zh-TW', 'zh-Hant'],
    ['zh-HK', 'zh-Hant'],
    ['zh-Hant-CN', 'zh-Hant'],
    ['yue-HK', 'zh-Hant'],
  ],
  ...[
    ['pt', 'pt-BR'],
    ['pt-PT', 'pt-PT'],
    ['pt-AO', 'pt-PT'],
    ['pt-US', 'pt-BR'],
    ['pt-BR', 'pt-BR'],
  ],
  ...[
    ['no', 'nb'],
    ['nn-NO', 'nb'],
    ['nb', 'nb'],
    ['iw', 'he'],
    ['in', 'id'],
    ['prs', 'fa'],
    ['fa-AF', 'fa'],
  ],
  ...[
    ['ar-EG', 'ar'],
    ['ja-JP', 'ja'],
    ['ko', 'ko'],
    ['th-TH', 'th'],
    ['uk-UA,ru;q=0.9', 'uk'],
  ],
  ...[
    ['ca, es;q=0.9, en;q=0.8', 'es'],
    ['fr;q=0, de', 'de'],
    ['sk, cs;q=0.5', 'cs'],
    ['en;q=0.1, de;q=0.2', 'de'],
    ['de;\tq=0.1, fr', 'fr'],
  ],
  ...[
    ['de;q=0.5, fr;q=0.5', 'de'],
    ['*, hu', 'hu'],
    ['  sv  ', 'sv'],
    ['xx, yy, da', 'da'],
    ['de;q=huge', 'de'],
  ],
] as [string, string][]

/** A language that is added later answers for its own tag, which these lists give to another or to none. */
const toLater = (asked: string): string | undefined => {
  const [first = ''] = asked.split(/[,;]/)
  return wanted.some(([, tag]) => tag === first) ? undefined : languageTags.find((tag) => tag === first)
}

test('a reader gets the language that is asked for, in letters that belong to it', () => {
  for (const [asked, tag] of wanted) assert.equal(chooseLanguage(asked), toLater(asked) ?? tag, asked)
  for (const asked of none) assert.equal(chooseLanguage(asked), toLater(asked) ?? null, asked)
  for (const tag of languageTags) assert.equal(chooseLanguage(tag), tag)
})

test('of a list the first ten are looked up, and nothing of a longer text', () => {
  const others = (count: number) => Array.from({ length: count }, () => 'tlh').join(',')
  assert.equal(chooseLanguage(`${others(9)},de`), 'de')
  assert.equal(chooseLanguage(`${others(10)},de`), null)
  assert.equal(chooseLanguage(`de${' '.repeat(askedMax - 2)}`), 'de')
  assert.equal(chooseLanguage(`de${' '.repeat(askedMax - 1)}`), null)
})

test('whatever is asked for, the answer is one of ours or none', () => {
  const part = fc.oneof(fc.constantFrom('de', 'zh-', 'Hant', '-', ';q=', '0.5', ',', '_', '.', '*', ' '), fc.string())
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const tag = chooseLanguage(parts.join(''))
      assert.ok(tag === null || languageTags.includes(tag))
    }),
    { numRuns: 10_000 },
  )
})
