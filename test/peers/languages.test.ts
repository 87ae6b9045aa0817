/** Every language as SpamAssassin judges it, by its local rules. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { composeMessage } from '../../src/delivery/message/compose-message.ts'
import type { OwnWords } from '../../src/domain/app/own-words.ts'
import { type AppSettings, defaultSettings } from '../../src/domain/app/settings.ts'
import type { Reference } from '../../src/domain/delivery/reference.ts'
import type { AppId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { CodePlace } from '../../src/domain/request/email-content.ts'
import { type EmailType, emailTypes } from '../../src/domain/request/email-kinds.ts'
import { languageTags } from '../../src/templates/locales/locales.ts'
import { lacking, toolPath } from '../support/installed.ts'

const acceptedAt = Date.UTC(2026, 10, 20, 17)
const usual: AppSettings = { ...defaultSettings, name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } }

const compose = (locale: string, type: EmailType, code: CodePlace, settings: AppSettings): string =>
  composeMessage({
    claim: {
      ...{ type, acceptedAt, ageMs: 0 },
      expiresAt: acceptedAt + 900_000,
      content: {
        ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
        url: 'https://app.acme.test/auth?token=b2S-1f7Qkz8',
        ...{ organisationName: 'Blue Team', inviterName: 'Zoë' },
        ...(code !== 'none' && { code: '246813' }),
        ...(code === 'first' && { codeFirst: true as const }),
      },
    },
    reference: 'em_01m85rt6yr0000fykq7my1841e.0123456789' as Reference,
    app: { id: 'app_1' as AppId, version: 1, settings, slug: 'acme' },
    lifeLeftMs: 900_000,
  })
    .toString('latin1')
    .replaceAll('\r\n', '\n')

const skip = lacking('spamassassin')

/** The scores of every language. */
function judge(types: readonly EmailType[], code: CodePlace, tags = languageTags, settings = usual) {
  const begin = 'From a@b Thu Nov 20 17:00:00 2026'
  const mailbox = tags
    .flatMap((tag) => types.map((type) => `${begin}\n${compose(tag, type, code, settings)}\n`))
    .join('')
  const report = execFileSync(toolPath('spamassassin'), ['-L', '-t', '--mbox'], {
    input: Buffer.from(mailbox, 'latin1'),
    encoding: 'latin1',
    maxBuffer: 64 * 1024 * 1024,
  })
  // It answers in an order of its own, so each message says what it is.
  return report
    .split(/^(?=X-Spam-Checker-Version: )/m)
    .slice(1)
    .map((message) => {
      const read = (pattern: RegExp) => pattern.exec(message)?.[1] ?? assert.fail(message)
      return {
        tag: read(/^Content-Language: (.*)$/m),
        type: read(/^Feedback-ID: (\w+):/m),
        score: Number(read(/^X-Spam-Status: .*?score=(-?[\d.]+)/m)),
        rules: read(/^X-Spam-Status: [\s\S]*?tests=([\s\S]*?) autolearn/m).replace(/\s+/g, ''),
      }
    })
}

type Score = ReturnType<typeof judge>[number]
const findMax = (scores: readonly Score[], wanted: string): number =>
  Math.max(...scores.filter(({ tag }) => tag === wanted).map(({ score }) => score))

test('no language scores more than 1.0 above English', { skip }, (t) => {
  const scores = judge(emailTypes, 'none')
  const judged = new Set(scores.map(({ tag, type }) => `${tag} ${type}`))
  assert.deepEqual([judged.size, scores.length], Array(2).fill(languageTags.length * emailTypes.length))
  const english = findMax(scores, 'en')
  for (const { tag, type, score, rules } of scores) {
    const text = `${tag} ${type}: ${score}, English ${english} (${rules})`
    // MIXED_ES, worth 1.0, counts letters that look like "e" but are another: Russian, Ukrainian, Vietnamese.
    if (score > english) t.diagnostic(text)
    assert.ok(score <= english + 1, text)
  }
})

test('a code does not raise the score of English, and no language scores more than 1.0 above it', {
  skip,
}, (t) => {
  const types = emailTypes.filter((type) => type !== 'organisation_invite')
  const today = findMax(judge(types, 'none', ['en']), 'en')
  for (const code of ['beside', 'first'] as const)
    for (const { tag, type, score, rules } of judge(types, code)) {
      const text = `${tag} ${type}, code ${code}: ${score}, English without one ${today} (${rules})`
      if (score > today) t.diagnostic(text)
      assert.ok(score <= (tag === 'en' ? today : today + 1), text)
    }
})

/** Each in its language: a mixture of scripts would be suspect. */
const ownWords: Readonly<Record<string, OwnWords>> = {
  en: { subject: 'Your {app} link', text: 'Welcome back to {app}. Press the button.', signOff: 'The {app} team' },
  de: { subject: 'Dein Link für {app}', text: 'Schön, dass du wieder da bist.', signOff: 'Dein Team von {app}' },
  ru: { subject: 'Ваша ссылка для {app}', text: 'С возвращением в {app}. Нажмите кнопку.', signOff: 'Команда {app}' },
  ar: { subject: 'رابطك إلى {app}', text: 'مرحبًا بعودتك إلى {app}. اضغط على الزر.', signOff: 'فريق {app}' },
  ja: { subject: '{app}のリンク', text: '{app}へようこそ。ボタンを押してください。', signOff: '{app}チーム' },
}

test('words of an app’s own score no more than those of Postern', { skip }, (t) => {
  const tags = Object.keys(ownWords)
  const words = Object.fromEntries(emailTypes.map((type) => [type, ownWords]))
  const own = { ...usual, words }
  const before = judge(emailTypes, 'none', tags)
  const after = judge(emailTypes, 'none', tags, own)
  assert.equal(after.length, tags.length * emailTypes.length)
  for (const { tag, type, score, rules } of after) {
    const usually = before.find((other) => other.tag === tag && other.type === type)?.score ?? Number.NaN
    const text = `${tag} ${type}: ${score}, usually ${usually} (${rules})`
    if (score > usually) t.diagnostic(text)
    assert.ok(score <= usually, text)
  }
})
