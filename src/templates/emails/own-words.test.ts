import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { renderSample, sampleNames } from '../../../test/support/language-samples.ts'
import { checkOwnWords, type OwnWords } from '../../domain/app/own-words.ts'
import { type EmailType, emailTypes } from '../../domain/request/email-kinds.ts'
import { languageTags } from '../locales/language-files.ts'
import { languageOf } from '../locales/locales.ts'

const own: OwnWords = { subject: 'Ours for {app}', text: 'Our sentence for {app}.', signOff: 'Your {app} people' }
const ofEvery = (type: EmailType, words: OwnWords) => ({
  [type]: Object.fromEntries(languageTags.map((tag) => [tag, words])),
})
const render = (tag: string, type: EmailType, more: Partial<Parameters<typeof renderSample>[2]> = {}) =>
  renderSample(tag, type, { app: 'Acme', ...more })
/** The text without what isolates and separates. */
const plain = (text: string) => text.replace(/[\u2060\u2068\u2069]/g, '')

test('every type in every language is written in the words of the app, in both parts and in the subject', () => {
  for (const tag of languageTags)
    for (const type of emailTypes) {
      const [usual, { html, subject, text }] = [render(tag, type), render(tag, type, { words: ofEvery(type, own) })]
      assert.equal(subject, 'Ours for Acme')
      for (const part of [plain(text), plain(html)]) {
        assert.ok(part.includes('Our sentence for Acme.') && part.includes('Your Acme people'), `${tag} ${type}`)
        assert.ok(part.indexOf('Our sentence') < part.indexOf('Your Acme people'))
      }
      const { ignore } = languageOf(tag).strings.invitation('Acme', { organisationName: 'x', plain: true })
      if (type === 'organisation_invite') assert.ok(plain(text).includes(plain(ignore)), 'the notes stay')
      assert.notEqual(usual.subject, subject)
      assert.doesNotMatch(plain(usual.text), /Our sentence|Your Acme people/)
    }
})

test('an email is never half of each: another language, a code first or another purpose is in the words of Postern', () => {
  const words = { magic_link: { de: own } }
  for (const [tag, more] of [
    ['en', {}],
    ['fr', {}],
    ['de', { code: 'first' }],
    ['de', { purpose: 'identity' }],
  ] as const)
    assert.deepEqual(render(tag, 'magic_link', { words, ...more }), render(tag, 'magic_link', more), tag)
  assert.deepEqual(render('de', 'password_reset', { words }), render('de', 'password_reset'))
  assert.equal(render('de', 'magic_link', { words, code: 'beside' }).subject, 'Ours for Acme')
  const changed = { purpose: 'address_change' as const }
  assert.deepEqual(render('de', 'magic_link', { words, ...changed }), render('de', 'magic_link', changed))
})

test('a variant of a language has the words of that language, unless it has its own', () => {
  const inUs = (words: OwnWords) => render('en-US', 'magic_link', { words: { magic_link: { en: words } } })
  assert.equal(inUs(own).subject, 'Ours for Acme')
  const both = { magic_link: { en: own, 'en-US': { ...own, subject: 'American' } } }
  assert.equal(render('en-US', 'magic_link', { words: both }).subject, 'American')
  assert.equal(render('en', 'magic_link', { words: both }).subject, 'Ours for Acme')
  const english = { magic_link: { en: own } }
  assert.deepEqual(render('fr', 'magic_link', { words: english }), render('fr', 'magic_link'))
  const brazil = { magic_link: { 'pt-BR': own } }
  assert.equal(render('pt-BR', 'magic_link', { words: brazil }).subject, 'Ours for Acme')
  assert.deepEqual(render('pt-PT', 'magic_link', { words: brazil }), render('pt-PT', 'magic_link'))
})

test('names of an invitation are quoted, become no links, and stay out of a subject that they do not suit', () => {
  const words = ofEvery('organisation_invite', {
    subject: '{organisation} is on {app}',
    text: '{inviter} works at {organisation}.',
    signOff: 'Yours, {inviter}',
  })
  const invite = (organisationName: string, inviterName?: string | null) =>
    render('en', 'organisation_invite', { words, organisationName, ...(inviterName !== undefined && { inviterName }) })
  const blue = invite('Blue', 'Zoë')
  assert.equal(blue.subject, '“Blue” is on Acme')
  assert.match(plain(blue.text), /“Zoë” works at “Blue”\.\n\nThe names in quotation marks/)
  assert.match(plain(blue.text), /Yours, “Zoë”/)
  const linked = invite('Blue', 'a@evil.test')
  assert.doesNotMatch(linked.text + linked.html, /a@evil|evil\.test/)
  for (const name of ['Booking.com', '0800 12345', '<b>', 'x'.repeat(41)])
    assert.deepEqual(invite(name), render('en', 'organisation_invite', { organisationName: name }), name)
  const missing = render('en', 'organisation_invite', { organisationName: 'Blue', inviterName: null })
  assert.deepEqual(invite('Blue', null), missing, 'the inviter is missing')
})

test('the text part has no button, so it has the words for a link in their place', () => {
  const words = { magic_link: { en: { ...own, text: 'Press the button, {app} waits.' } } }
  const { html, text } = render('en', 'magic_link', { words })
  assert.match(plain(html), /Press the button, Acme waits/)
  assert.match(plain(text), /Open the link, Acme waits/)
})

test('a name whose direction differs is isolated, and the sign-off is above the notes', () => {
  const hebrew = renderSample('en', 'magic_link', { app: 'עיבוד', words: ofEvery('magic_link', own) })
  assert.match(hebrew.text, /Our sentence for \u2068עיבוד\u2069\./)
  const { html, text } = render('en', 'magic_link', { words: ofEvery('magic_link', own) })
  for (const [part, note] of [
    [html, '<hr'],
    [text, 'If you did not ask'],
  ] as const)
    assert.ok(part.indexOf('Your Acme people') < part.indexOf(note))
  assert.match(html, /<p class="ink"[^>]*>Your Acme people/)
})

test('the note about names in quotation marks is in no email without them', () => {
  const { text } = render('en', 'organisation_invite', { words: ofEvery('organisation_invite', own) })
  assert.doesNotMatch(plain(text), /quotation marks/)
  const inSubject = ofEvery('organisation_invite', { ...own, subject: 'From {inviter}' })
  const invited = { organisationName: 'Blue', inviterName: 'Zoë' }
  assert.match(plain(render('en', 'organisation_invite', { words: inSubject, ...invited }).text), /quotation marks/)
  const hostile = { organisationName: 'Blue', inviterName: 'evil.test' }
  const both = ofEvery('organisation_invite', { ...own, subject: '{organisation}: {inviter}' })
  assert.deepEqual(
    render('en', 'organisation_invite', { words: both, ...hostile }),
    render('en', 'organisation_invite', hostile),
  )
  const signed = ofEvery('organisation_invite', { ...own, signOff: '{inviter}' })
  assert.match(plain(render('en', 'organisation_invite', { words: signed, ...invited }).text), /quotation marks/)
})

test('no words make markup or a placeholder, and isolates stay balanced, whatever was accepted', () => {
  const tags = (text: string) => (text.match(/<[a-z!/]/gi) ?? []).length
  const arbitrary = fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' }).map((text) => text.trim())
  let accepted = 0
  fc.assert(
    fc.property(
      fc.record({ subject: arbitrary, text: arbitrary, signOff: arbitrary }),
      fc.constantFrom('en', 'ar', 'ja'),
      fc.constantFrom(...sampleNames),
      (words, tag, app) => {
        const setting = { magic_link: { [tag]: words } }
        if (checkOwnWords(setting, { name: app, locales: languageTags }).length > 0) return
        accepted += 1
        const { html, subject, text } = renderSample(tag, 'magic_link', { app, words: setting })
        const simple = { magic_link: { [tag]: { ...own, subject: 'x' } } }
        assert.equal(tags(html), tags(renderSample(tag, 'magic_link', { app, words: simple }).html))
        assert.ok(text.includes(words.text.replaceAll('{app}', app)) || words.text.includes('{app}'))
        assert.doesNotMatch(subject, /[\r\n\u2060-\u2069]/)
      },
    ),
    { numRuns: 1000 },
  )
  assert.ok(accepted > 100, `${accepted}`)
})
