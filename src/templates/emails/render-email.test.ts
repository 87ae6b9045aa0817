import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AppSettings, defaultSettings } from '../../domain/app/settings.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { EmailContent } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { contrast, textOn } from '../colour.ts'
import { isPlainName, unlinkable } from '../letter.ts'
import { renderEmail, type TemplateInput } from './render-email.ts'

const app: AppSettings = {
  ...defaultSettings,
  name: 'Acme & Söhne',
  from: { name: 'Acme', address: 'auth@acme.test' },
  supportContact: 'help@acme.test',
}
const content: EmailContent = {
  to: 'ada@example.com' as EmailAddress,
  url: 'https://app.acme.test/auth?token=a%26b',
  organisationName: 'Blue Team',
  inviterName: 'Zoë',
  messageIdDomain: 'acme.test',
}
const input: TemplateInput = {
  app,
  type: 'magic_link',
  content,
  expiresAt: Date.parse('2026-11-20T17:05:00Z'),
  lifeLeftMs: 899_950,
}
const render = (change: Partial<TemplateInput> = {}) => renderEmail({ ...input, ...change })
const invite = (names: { organisationName?: string; inviterName?: string }) =>
  render({ type: 'organisation_invite', content: { ...content, ...names } })

for (const type of emailTypes) {
  test(`${type}: both parts carry the link, its end, the app and the support contact`, () => {
    const { subject, html, text } = render({ type })
    assert.ok(subject.length > 0)
    for (const part of [text, html.replaceAll('&amp;', '&').replaceAll(/<\/?span[^>]*>/g, '')]) {
      assert.ok(part.includes(content.url))
      assert.ok(part.includes('15 minutes (20 Nov 2026, 17:05 UTC)'))
      assert.ok(part.includes('Acme & Söhne'))
      assert.ok(part.includes('help@acme.test'))
      assert.match(part, /ignore this email/)
    }
    assert.match(html, /<html lang="en" dir="ltr">/)
    assert.match(html, /<title>[^<]+<\/title>/)
    assert.match(html, /color-scheme/)
    assert.doesNotMatch(html, /<script|javascript:|<img/)
  })
}

test('the length of time is rounded down to whole units', () => {
  const cases: [number, string][] = [
    [30_000, 'less than a minute'],
    [60_000, '1 minute'],
    [119_000 - 5000, '1 minute'],
    [3_600_000, '1 hour'],
    [3_660_000, '61 minutes'],
    [5_400_000, '90 minutes'],
    [7_200_000 - 6000, '119 minutes'],
    [7_200_000 - 50, '2 hours'],
    [86_400_000 - 50, '24 hours'],
    [7 * 86_400_000 - 50, '7 days'],
    [2.9 * 86_400_000, '2 days'],
  ]
  for (const [lifeLeftMs, words] of cases)
    assert.ok(render({ lifeLeftMs }).text.includes(`expires in ${words} (`), words)
})

test('markup in names is text', () => {
  const { html } = invite({ organisationName: '<b>x</b>"\'&', inviterName: '<script>' })
  assert.doesNotMatch(html, /<b>|<script/)
  assert.ok(html.replaceAll('\u2060', '').includes("&lt;b&gt;x&lt;/b&gt;&quot;'&amp;"))
})

test('no text makes markup of its own', () => {
  const tags = (text: string) => (text.match(/<[a-z!/]/gi) ?? []).length
  const plain = tags(invite({ organisationName: 'x', inviterName: 'x' }).html)
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (organisationName, inviterName) => {
      assert.equal(tags(invite({ organisationName, inviterName }).html), plain)
    }),
  )
})

test('names that look like links or numbers become neither, in both parts', () => {
  const { html, text, subject } = invite({
    organisationName: 'Booking.com',
    inviterName: 'call 0800 123456 or a@evil.test',
  })
  for (const part of [html, text]) {
    assert.doesNotMatch(part, /Booking\.com|0800|123456|a@evil|evil\.test/)
    assert.ok(part.replaceAll('\u2060', '').includes('Booking.com'), 'still legible')
  }
  assert.doesNotMatch(subject, /Booking/)
})

test('a plain organisation stands in the subject, any other does not', () => {
  assert.equal(invite({ organisationName: 'Blue Team' }).subject, 'Join “Blue Team” on Acme & Söhne')
  for (const organisationName of ['evil.com', '0800 12345', '<x>', 'Free money! Click', 'a'.repeat(41), 'a@b', 'x/y']) {
    assert.equal(invite({ organisationName }).subject, 'You have been invited to an organisation on Acme & Söhne')
  }
  assert.equal(isPlainName("O'Brien, Smith & Co. - 3rd"), true)
})

test('names are never in the preheader', () => {
  const { html } = invite({ organisationName: 'Blue Team' })
  const preheader = /<div style="display:none[^>]*>([^<]*)</.exec(html)?.[1] ?? ''
  assert.ok(preheader.length > 0)
  assert.doesNotMatch(preheader, /Blue|Zo/)
})

test('unlinkable takes nothing away', () => {
  fc.assert(
    fc.property(fc.string(), (name) =>
      assert.equal(unlinkable(name).replaceAll('\u2060', ''), name.replaceAll('\u2060', '')),
    ),
  )
})

test('contrast is what WCAG 2.2 says', () => {
  const pairs = [
    ['#000000', '#ffffff', 21],
    ['#777777', '#ffffff', 4.48],
    ['#1d4ed8', '#ffffff', 6.7],
    ['#ff0000', '#00ff00', 2.91],
    ['#0a0a0a', '#000000', 1.06],
  ] as const
  for (const [one, other, ratio] of pairs) {
    assert.ok(Math.abs(contrast(one, other) - ratio) < 0.01, `${one} ${other}: ${contrast(one, other)}`)
    assert.equal(contrast(one, other), contrast(other, one))
  }
})

test('the button text reads on any accent', () => {
  const colours = fc.integer({ min: 0, max: 0xffffff }).map((number) => `#${number.toString(16).padStart(6, '0')}`)
  fc.assert(fc.property(colours, (colour) => assert.ok(contrast(colour, textOn(colour)) >= 4.5)))
})

test('the longest link keeps the email under 102 KB', () => {
  const url = `https://app.acme.test/auth?token=${'%7C'.repeat(8000)}` // 8,000 times |
  assert.ok(render({ content: { ...content, url } }).html.length < 102 * 1024)
})

test('a button that would not be seen on the card, light or dark, gets an edge', () => {
  const edge = (accentColour: string) =>
    /border:1px solid (#\w{6});mso/.exec(render({ app: { ...app, branding: { accentColour } } }).html)?.[1]
  assert.deepEqual(['#1d4ed8', '#ffffff', '#1c1f24'].map(edge), ['#1d4ed8', '#8a929e', '#8a929e'])
})

test('beside a code, the text speaks of the button alone, and never of a password', () => {
  const say = (code?: string) => render({ content: { ...content, ...(code !== undefined && { code }) } }).text
  assert.match(say(), /Open the link to sign in to Acme & Söhne\. No password is needed\./)
  assert.match(say('246813'), /Open the link to sign in to Acme & Söhne\.\r?\n/)
})

test('the support contact is a link, and no stop touches it', () => {
  for (const [supportContact, href] of [
    ['help@acme.test', 'mailto:help@acme.test'],
    ['help?bcc=x%0d@acme.test', 'mailto:help%3Fbcc%3Dx%250d@acme.test'],
    ['https://acme.test/help/?a=1&b=@x', 'https://acme.test/help/?a=1&amp;b=@x'],
  ] as const) {
    const { html, text } = render({ app: { ...app, supportContact } })
    assert.ok(html.includes(`href="${href}"`), href)
    assert.match(text, new RegExp(`: ${RegExp.escape(supportContact)}\n`))
  }
})

test('a duration and a date stay in one line, and Korean breaks between words', () => {
  const { html } = render({})
  assert.match(html, /<span style="white-space:nowrap">20 Nov 2026, 17:05 UTC<\/span>/)
  assert.match(html, /<span style="white-space:nowrap">in 15 minutes<\/span>/)
  assert.match(html, /word-break:break-word/)
  assert.match(render({ content: { ...content, locale: 'ko' } }).html, /word-break:keep-all/)
})

test('no line ends within "e-mail"', () => {
  const { html, subject, text } = render({
    type: 'email_verification',
    content: { ...content, locale: 'sv' },
  })
  assert.match(html, /<h1[^>]*>Bekräfta din e-\u2060post/)
  assert.doesNotMatch(subject + text, /\u2060/)
})

test('American readers get their spelling and their clock', () => {
  const { html, subject } = render({
    type: 'organisation_invite',
    content: { ...content, locale: 'en-US', organisationName: 'evil.com' },
  })
  assert.equal(subject, 'You have been invited to an organization on Acme & Söhne')
  assert.match(html, /Nov 20, 2026, 5:05\sPM UTC/)
})

test('above a code, the preheader does not end in a colon', () => {
  for (const locale of ['en', 'fr', 'zh-Hans', 'ja']) {
    const { html } = render({ content: { ...content, locale, code: '246813', codeFirst: true } })
    assert.doesNotMatch(html, /mso-hide:all">[^<]*[:：]\s*(?:&nbsp;|\u00a0)*&nbsp;&zwnj;/)
    assert.match(html, /mso-hide:all">[^<]{10}/)
  }
})
