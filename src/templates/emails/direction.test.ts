/** Directions in both parts of an email and in its subject: every language, names of any script. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderPages, renderSample, sampleNames } from '../../../test/support/language-samples.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { languageTags } from '../locales/language-files.ts'
import { languageOf } from '../locales/locales.ts'

const samples = languageTags.flatMap((tag) =>
  emailTypes.flatMap((type) =>
    sampleNames.flatMap((app) =>
      sampleNames.map((organisationName) => ({
        what: `${tag} ${type} ${app} ${organisationName}`,
        tag,
        app,
        ...renderSample(tag, type, { app, organisationName }),
      })),
    ),
  ),
)

/** Whether each isolate of a line is closed on it, and none is closed that is not open. */
function isBalanced(line: string): boolean {
  let depth = 0
  for (const letter of line) {
    if (letter === '\u2068') depth++
    if (letter === '\u2069') depth--
    if (depth < 0) return false
  }
  return depth === 0
}

test('isolates are balanced in every line of both parts, and in a subject there are none', () => {
  let isolated = 0
  for (const { what, subject, html, text } of samples) {
    assert.doesNotMatch(subject, /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069]/, what)
    for (const line of [...text.split('\n'), ...html.split(/<[^>]*>/)]) {
      assert.ok(isBalanced(line), `${what}: ${line}`)
      if (line.includes('\u2068')) isolated++
    }
  }
  assert.ok(isolated > samples.length)
})

test('a name whose direction differs from the text is isolated, and so is each typed name', () => {
  for (const { what, tag, app, html, text } of samples) {
    const isRight = languageOf(tag).strings.direction === 'rtl'
    const signature = text.slice(0, text.indexOf('\n--'))
    for (const part of [signature, html.slice(html.indexOf('<h1'), html.indexOf('</table>'))]) {
      const bare = part.replaceAll(/\u2068[^\u2069]*\u2069/g, '')
      if (isRight || app === 'عيادة') assert.ok(!bare.includes(app), `${what}: ${bare}`)
      assert.ok(!bare.includes('דנה'), what)
    }
  }
})

test('names, contacts and addresses outside sentences are isolated, in emails and on pages', () => {
  const app = 'Acme Inc. (EU)!'
  for (const tag of languageTags.filter((other) => languageOf(other).strings.direction === 'rtl')) {
    const { html } = renderSample(tag, 'magic_link', { app })
    for (const page of [html, ...renderPages(tag, app)]) {
      const bare = page
        .slice(page.indexOf('<body'))
        .replaceAll(/\u2068[^\u2069]*\u2069/g, '')
        .replaceAll(/<[^>]*>/g, '')
      for (const text of [app, 'https://acme.test/help/', '(2nd floor)'])
        assert.ok(!bare.includes(text), `${tag}: ${text}`)
    }
  }
  const { html } = renderSample('en', 'magic_link', { app: 'عيادة (فرع)' })
  assert.match(html, />\u2068عيادة \(فرع\)\u2069<\/p>/)
})

test('an email that is read from right to left begins each line of its text with a letter of its own', () => {
  for (const { what, tag, app, subject, text } of samples) {
    if (languageOf(tag).strings.direction === 'ltr') continue
    const own = new RegExp(`^\\p{Script=${new Intl.Locale(tag).maximize().script}}`, 'u')
    assert.match(subject, own, what)
    const lines = text.split('\n').filter((line) => line !== '')
    const others = lines.filter((line) => !own.test(line))
    // The link, which stands alone, and the signature.
    assert.deepEqual(others.length, app === 'عيادة' && tag !== 'he' ? 4 : 5, `${what}: ${others}`)
    assert.match(others[0] ?? '', /^https:/, what)
    assert.deepEqual(others.slice(1, 3), ['https://acme.test/help/', '--'], what)
  }
})
