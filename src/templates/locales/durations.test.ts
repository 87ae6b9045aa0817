import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languageTags, readLanguageFile } from './language-files.ts'
import { languageOf } from './locales.ts'

const range = (least: number, most: number) => Array.from({ length: most - least + 1 }, (_, n) => n + least)

/** The counts in which a length of time is said. An hour is one hour, not sixty minutes. */
const units = [
  { unit: 'minute', ms: 60_000, counts: range(1, 119).filter((count) => count !== 60) },
  { unit: 'hour', ms: 3_600_000, counts: range(1, 47) },
  { unit: 'day', ms: 86_400_000, counts: range(2, 400) },
] as const

const toScript = (tag: string): string => {
  const { language, script } = new Intl.Locale(tag).maximize()
  return `${language}-${script}`
}

test('a duration of any length is in its language, in every plural category that whole numbers reach', () => {
  for (const tag of languageTags) {
    const { expires, language } = readLanguageFile(tag)
    const { formats = tag } = language
    const fromNow = new Intl.RelativeTimeFormat(formats, { numeric: 'always' })
    const plurals = new Intl.PluralRules(formats)
    // CLDR changes its words, so they come from it here too; the formats are those of the language.
    for (const format of [fromNow, new Intl.NumberFormat(formats), new Intl.DateTimeFormat(formats)])
      assert.equal(toScript(format.resolvedOptions().locale), toScript(tag))
    const reached = new Set<string>()
    for (const { unit, ms, counts } of units) {
      const lengths = new Intl.NumberFormat(formats, { style: 'unit', unit, unitDisplay: 'long' })
      for (const count of counts) {
        const words = expires.includes('{in}') ? fromNow.format(count, unit) : lengths.format(count)
        const said = Object.entries(language.wording ?? {}).reduce((all, [from, to]) => all.replaceAll(from, to), words)
        assert.equal(languageOf(tag).strings.duration(count * ms), said, `${tag}: ${count} ${unit}`)
        reached.add(plurals.select(count))
      }
    }
    for (const count of range(1, 1000)) assert.ok(reached.has(plurals.select(count)), `${tag}: ${count}`)
  }
})

test('no duration is English in another language, and every time says its zone', () => {
  const english = languageOf('en').strings
  for (const tag of languageTags) {
    const { strings } = languageOf(tag)
    assert.match(strings.dateTime(0), /UTC/, tag)
    for (const ms of [0, 60_000, 900_000, 7_200_000, 172_800_000])
      if (!tag.startsWith('en')) assert.notEqual(strings.duration(ms), english.duration(ms), tag)
  }
})
