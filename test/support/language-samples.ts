/** Every email and every hosted page in a language, with texts that are hard to lay out. */

import type { OwnWordsByType } from '../../src/domain/app/own-words.ts'
import { type AppSettings, defaultSettings } from '../../src/domain/app/settings.ts'
import { parseAuthLink } from '../../src/domain/request/auth-link.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { CodePlace, Purpose } from '../../src/domain/request/email-content.ts'
import { type EmailType, emailTypes } from '../../src/domain/request/email-kinds.ts'
import { type Rendered, renderEmail } from '../../src/templates/emails/render-email.ts'
import { languageOf } from '../../src/templates/locales/locales.ts'
import { expiredPage, openPage, unavailablePage, unknownPage } from '../../src/templates/pages/hosted-page.ts'

export const longName = 'Donaudampfschifffahrtsgesellschaft'
/** Names of apps and of people: short, long, and in scripts of either direction. */
export const sampleNames = ['Acme', longName, 'عيادة', 'さくら銀行'] as const

const newApp = (name: string): AppSettings => ({
  ...defaultSettings,
  name,
  from: { name, address: 'auth@acme.test' },
  supportContact: 'https://acme.test/help/',
  branding: { addressLine: 'Acme Inc., 1 High Street (2nd floor)' },
  fallbackUrl: 'https://acme.test/get',
  newEmailUrl: 'https://acme.test/sign-in',
})

/** As wide as a code can be. */
export const longCode = 'WM4W-WM4W-WM'

type SampleOptions = {
  readonly app: string
  readonly organisationName?: string
  readonly code?: CodePlace
  readonly formOfAddress?: string
  readonly words?: OwnWordsByType
  readonly purpose?: Purpose
  /** Null for none. */
  readonly inviterName?: string | null
}

export const renderSample = (
  locale: string,
  type: EmailType,
  {
    app,
    organisationName = longName,
    inviterName = 'דנה كريم 山田',
    code = 'none',
    purpose,
    ...settings
  }: SampleOptions,
): Rendered =>
  renderEmail({
    app: { ...newApp(app), ...settings },
    type,
    content: {
      ...(code !== 'none' && { code: longCode }),
      ...(code === 'first' && { codeFirst: true as const }),
      ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
      ...{ url: `https://links.acme.test/auth?token=${'aB3-'.repeat(40)}`, hosted: true },
      ...{ organisationName, ...(inviterName !== null && { inviterName }), ...(purpose && { purpose }) },
    },
    expiresAt: Date.UTC(2026, 10, 20, 17, 5),
    lifeLeftMs: 900_000,
  })

/** The pages for a link to a mobile app and for one to a website, and those for links that do not open. */
export function renderPages(locale: string, name: string): string[] {
  const language = languageOf(locale)
  const app = newApp(name)
  const open = (type: EmailType, url: string) => {
    const destination = parseAuthLink(url, new Set(['acme']))
    if (!destination.ok) throw new Error(url)
    return openPage({ ...language, app, type, destination: destination.value })
  }
  return [
    ...emailTypes.map((type) => open(type, 'acme://auth/verify?token=x')),
    open('magic_link', 'https://app.acme.test/auth?token=x'),
    ...[
      expiredPage(language, app, Date.parse('2026-11-20T17:15:00Z')),
      unknownPage(language),
      unavailablePage(language),
    ],
  ].map(({ body }) => body)
}
