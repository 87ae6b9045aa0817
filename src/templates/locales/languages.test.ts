import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renderSample } from '../../../test/support/language-samples.ts'
import { codePlaces, purposes } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { writeLetter } from '../emails/write-letter.ts'
import { type LanguageFile, languageTags, otherForms, readLanguageFile } from './language-files.ts'
import { languageOf } from './locales.ts'
import { makeStrings } from './strings.ts'

type Texts = ReadonlyMap<string, string>

/** The texts of a file by their place, such as `magicLink.subject`. */
function listTexts(file: LanguageFile): Texts {
  const collect = (value: object, place: string): [string, string][] =>
    Object.entries(value).flatMap(([name, inner]) =>
      typeof inner === 'string' ? [[place + name, inner]] : collect(inner, `${place}${name}.`),
    )
  const { extends: _base, language: _, ...texts } = file
  return new Map(collect(texts, ''))
}

/** By tag, and with their other form of address as `de.informal`. */
const files = new Map(
  [...languageTags, ...otherForms].map((name) => {
    const [tag = '', form] = name.split('.')
    return [name, readLanguageFile(tag, form)]
  }),
)
const english = listTexts(readLanguageFile('en'))
const translations = [...files].filter(([tag]) => !tag.startsWith('en'))

const listPlaceholders = (text: string): string[] => (text.match(/\{\w*\}/g) ?? []).sort()

test('the tags are in their canonical form', () => {
  assert.ok(languageTags.length >= 26)
  for (const tag of languageTags) assert.equal(new Intl.Locale(tag).toString(), tag)
})

test('every language has every text of English with its placeholders, and no other', () => {
  for (const [tag, file] of files) {
    const texts = listTexts(file)
    assert.deepEqual([...texts.keys()].sort(), [...english.keys()].sort(), tag)
    // `{in}` is "in 15 minutes" and `{duration}` "15 minutes": a language takes the one that it needs.
    const isFromNow = file.expires.includes('{in}')
    for (const [place, text] of english) {
      const wanted = listPlaceholders(text).map((name) => (name === '{in}' && !isFromNow ? '{duration}' : name))
      assert.deepEqual(listPlaceholders(texts.get(place) ?? ''), wanted.sort(), `${tag} ${place}`)
    }
  }
})

test('a text is plain: no markup, no direction control, no straight quotation mark, no two spaces', () => {
  for (const [tag, file] of files) {
    assert.doesNotMatch(file.language.quotes.join(''), /[<>&"'`\\]/, tag)
    for (const [place, text] of listTexts(file)) {
      assert.doesNotMatch(text, /[<>&"'`\\]|\s\s|^\s|\s$/u, `${tag} ${place}`)
      assert.doesNotMatch(text, /[\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/u, `${tag} ${place}`)
      assert.equal(text, text.normalize('NFC'), `${tag} ${place}`)
      assert.doesNotMatch(text.replaceAll(/\{\w+\}/g, ''), /[{}]/, `${tag} ${place}`)
    }
  }
})

test('no English is left, and nobody forgot a text', () => {
  for (const [tag, file] of translations)
    for (const [place, text] of listTexts(file)) {
      assert.doesNotMatch(text, /\b(the|your|you|this|with)\b/i, `${tag} ${place}`)
      assert.notEqual(text, english.get(place), `${tag} ${place}`)
    }
})

test('an email has one form of address: no word of the other one is left', () => {
  const words: Readonly<Record<string, RegExp>> = {
    de: /\b(du|dich|dir|dein\w*)\b/i,
    'de.informal': /\b(Sie|Ihr\w*|Ihnen)\b/,
    fr: /\b(tu|te|toi|ton|ta|tes|tien\w*)\b/i,
    'fr.informal': /\b(vous|votre|vos|vôtre|(?!chez)\w+ez)\b/i,
    es: /\b(usted|su|sus|suya|use|escriba|confirme|ignore)\b/i,
    'es.formal': /\b(tú|tu|tus|te|ti|tuya|usa|escribe|confirma|ignora)\b/i,
    nl: /\b(u|uw|uzelf)\b/i,
    'nl.formal': /\b(je|jij|jijzelf|jou|jouw)\b/i,
  }
  assert.deepEqual(
    Object.keys(words)
      .filter((name) => name.includes('.'))
      .toSorted(),
    otherForms.toSorted(),
  )
  for (const [name, other] of Object.entries(words)) {
    const file = files.get(name) as LanguageFile
    const spoken = [...listTexts(file), ...Object.entries(file.language.withoutButton)]
    for (const [place, text] of spoken) assert.doesNotMatch(text.replaceAll(/\{\w+\}/g, ''), other, `${name} ${place}`)
  }
})

test('an email is in the form of address of its app, where its language has two', () => {
  const textOf = (locale: string, formOfAddress?: string) =>
    renderSample(locale, 'password_reset', { app: 'Acme', ...(formOfAddress && { formOfAddress }) }).text
  assert.match(textOf('de'), /für Ihr Konto/)
  assert.equal(textOf('de', 'formal'), textOf('de'))
  assert.match(textOf('de', 'informal'), /für dein Konto/)
  assert.match(textOf('es', 'formal'), /para su cuenta/)
  assert.equal(textOf('es', 'informal'), textOf('es'))
  assert.equal(textOf('pl', 'informal'), textOf('pl'))
})

test('French has a space that does not break before its double punctuation', () => {
  for (const name of ['fr', 'fr.informal'])
    for (const [place, text] of listTexts(files.get(name) as LanguageFile))
      assert.doesNotMatch(text, /[^\u00a0\u202f][:;?!]/u, `${name} ${place}`)
})

/** How wide a text is where letters have one width: a character of East Asia takes two columns. */
const countColumns = (text: string): number =>
  [...text].reduce(
    (sum, letter) =>
      sum +
      (/[\u1100-\u115f\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]/u.test(letter)
        ? 2
        : /\p{M}/u.test(letter)
          ? 0
          : 1),
    0,
  )

test('an email names the fonts of its language before those of every system', () => {
  const fontsOf = (tag: string) =>
    /Roboto,(.*?)Helvetica/.exec(renderSample(tag, 'magic_link', { app: 'Acme' }).html)?.[1]
  assert.deepEqual(['en', 'de', 'ko'].map(fontsOf), ['', '', "'Apple SD Gothic Neo','Malgun Gothic',"])
})

test('subjects, buttons and preheaders fit where they are shown', () => {
  const bounds = [
    [/subject/, 1, 60],
    [/button$|hostedPage\.(open|fallback)$/, 1, 34],
    [/^(magicLink|emailVerification|passwordReset|organisationInvite|addressChange)\.button$/, 1, 26],
    [/preheader/, 20, 95],
  ] as const
  for (const [tag, file] of files)
    for (const [place, text] of listTexts(file))
      for (const [which, least, most] of bounds) {
        if (!which.test(place)) continue
        const columns = countColumns(text.replace('{app}', 'Acme').replace('{organisation}', '“Acme”'))
        assert.ok(columns >= least && columns <= most, `${tag} ${place}: ${columns} columns: ${text}`)
      }
})

test('a text that is read from right to left begins with a letter that says so', () => {
  const rightToLeft = ['Arab', 'Hebr', 'Syrc', 'Thaa', 'Nkoo', 'Adlm']
  for (const [tag, file] of files) {
    const { script = '' } = new Intl.Locale(tag.split('.')[0] ?? '').maximize()
    assert.equal(file.language.direction, rightToLeft.includes(script) ? 'rtl' : 'ltr', tag)
    if (file.language.direction === 'ltr') continue
    for (const [place, text] of listTexts(file))
      assert.match(text, new RegExp(`^\\p{Script=${script}}`, 'u'), `${tag} ${place}`)
  }
})

test('a code is announced by a colon, or in Japanese by a full stop; no stop touches the contact', () => {
  for (const [tag, file] of files) {
    for (const [place, text] of listTexts(file))
      if (/codeText$|code\.beside$/.test(place))
        assert.match(text, tag === 'ja' ? /。$/u : /[:：]$/u, `${tag} ${place}`)
    // A program that makes links of addresses takes what follows into them.
    assert.match(file.support, /(^|\s)\{contact\}( \S.*)?$/u, tag)
  }
})

test('the document says how many languages there are, and whether native speakers have read them', () => {
  const document = readFileSync(new URL('../../../docs/languages.md', import.meta.url), 'utf8')
  assert.ok(document.includes(`in ${languageTags.length} languages`))
  const statement = [...files.values()].some(({ language }) => language.readBy.length > 0)
    ? 'No native speaker has read the languages whose last column says _nobody yet_.'
    : 'No native speaker has read any of these texts.'
  assert.ok(document.includes(statement), statement)
})

/** A language whose texts are the names of their places. */
function newMarkedFile(): LanguageFile {
  const mark = (value: object, place: string): object =>
    Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        name,
        typeof inner === 'string' ? `[${place}${name}]` : mark(inner, `${place}${name}.`),
      ]),
    )
  const { language, ...texts } = readLanguageFile('en')
  return { ...mark(texts, ''), language } as LanguageFile
}

test('the text part speaks of no button', () => {
  for (const [tag] of files) {
    const { strings } = languageOf(tag)
    for (const kind of ['magic_link', 'email_verification', 'password_reset', 'address_change'] as const)
      for (const place of ['none', 'beside'] as const) {
        const { paragraphs, plainParagraphs } = strings.words(kind, 'Acme', place)
        assert.notDeepEqual(plainParagraphs, paragraphs, `${tag} ${kind}`)
      }
  }
})

test('every text is used', () => {
  const strings = makeStrings('en', newMarkedFile())
  const expiry = { duration: strings.duration(0), dateTime: '' }
  const written = emailTypes.flatMap((type) =>
    ['Blue Team', 'evil.com'].flatMap((organisationName) =>
      [undefined, 'Zoë'].map((inviterName) => {
        const names = { organisationName, ...(inviterName && { inviterName }) }
        return [undefined, ...purposes].flatMap((purpose) => {
          const content = { ...names, ...(purpose && { purpose }) }
          return codePlaces.map((code) => writeLetter(strings, { type, app: 'Acme', content, code, expiry }))
        })
      }),
    ),
  )
  const { hostedPage: page, linkHint, opens } = strings
  const pages = [page, page.open(''), page.opensApp(''), page.appMissing(''), page.expiredAdvice('')]
  const all = JSON.stringify([written, pages, linkHint, opens, strings.support, expiry])
  const unused = [...english.keys()].filter((place) => !all.includes(`[${place}]`))
  assert.deepEqual(unused, [])
})
