/** Every language as SpamAssassin judges it, by its local rules. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { composeMessage } from '../../src/delivery/message/compose-message.ts'
import { defaultSettings } from '../../src/domain/app/settings.ts'
import type { AppId, EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { type EmailType, emailTypes } from '../../src/domain/request/email-request.ts'
import { languageTags } from '../../src/templates/locales/locales.ts'
import { lacking } from '../support/installed.ts'

const acceptedAt = Date.UTC(2026, 10, 20, 17)
const settings = { ...defaultSettings, name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } }

const compose = (locale: string, type: EmailType): string =>
  composeMessage({
    claim: {
      ...{ emailId: 'em_01m85rt6yr0000fykq7my1841e' as EmailId, type, acceptedAt },
      expiresAt: acceptedAt + 900_000,
      content: {
        ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
        url: 'https://app.acme.test/auth?token=b2S-1f7Qkz8',
        ...{ organisationName: 'Blue Team', inviterName: 'Zoë' },
      },
    },
    app: { id: 'app_1' as AppId, version: 1, settings, slug: 'acme' },
    lifeLeftMs: 900_000,
  })
    .toString('latin1')
    .replaceAll('\r\n', '\n')

type Verdict = { readonly score: number; readonly rules: string }

/** One process for all of them: it takes longer to start than to judge. */
function judge(messages: readonly string[]): Verdict[] {
  const mailbox = messages.map((message) => `From a@b Thu Nov 20 17:00:00 2026\n${message}\n`).join('')
  const report = execFileSync('/usr/bin/spamassassin', ['-L', '-t', '--mbox'], {
    input: Buffer.from(mailbox, 'latin1'),
    encoding: 'latin1',
    maxBuffer: 64 * 1024 * 1024,
  })
  const found = report.matchAll(/^X-Spam-Status: .*?score=(-?[\d.]+)[\s\S]*?tests=([\s\S]*?) autolearn/gm)
  const verdicts = [...found].map(([, score, rules = '']) => ({ score: Number(score), rules }))
  assert.equal(verdicts.length, messages.length)
  return verdicts
}

test('no language scores more than 1.0 above English', {
  skip: lacking({ spamassassin: '/usr/bin/spamassassin' }),
}, (t) => {
  const asked = languageTags.flatMap((tag) =>
    emailTypes.map((type) => ({ tag, type, message: compose(tag, type) })),
  )
  const scores = judge(asked.map(({ message }) => message)).map((verdict, n) => ({ ...asked[n], ...verdict }))
  const english = Math.min(...scores.filter(({ tag }) => tag === 'en').map(({ score }) => score))
  for (const { tag, type, message = '', score } of scores) {
    if (score <= english) continue
    // In a long mailbox, a rule that counts letters (MIXED_ES, 1.0) hits a few messages, English too, that it
    // does not hit by themselves; other ones each time.
    const [alone] = judge([message])
    assert.ok(alone)
    if (alone.score > english) t.diagnostic(`${tag} ${type}: ${alone.score} (${alone.rules})`)
    assert.ok(
      alone.score <= english + 1,
      `${tag} ${type}: ${alone.score}, English ${english} (${alone.rules})`,
    )
  }
})
