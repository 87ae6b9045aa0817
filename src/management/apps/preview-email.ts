/** Renders one of an app's emails with sample content, with settings as they are or as they would be. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { sampleAddress, sampleLifeMs, sampleUrl } from '../../domain/app/sample-link.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { sampleCode } from '../../domain/request/one-time-code.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { chooseLanguage } from '../../templates/locales/choose-language.ts'
import { isServiceAdmin } from '../operation/access.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppBody, AppPatch, mergePatch, parseSettings } from '../settings-schema.ts'
import { askedCode, askedLocale, choosePlace } from './asked.ts'

export const previewEmail = operation({
  method: 'POST',
  path: '/v1/apps/{app}/preview',
  role: 'reader',
  summary: 'Renders an email of the app with sample content. Sends and stores nothing.',
  body: closed({
    type: Type.Enum([...emailTypes]),
    settings: Type.Optional(AppPatch),
    locale: Type.Optional(askedLocale),
    code: Type.Optional(askedCode),
  }),
  audited: false,
  answer: closed({
    subject: Type.String(),
    html: Type.String(),
    text: Type.String(),
    language: Type.String({ description: 'The tag of the language it is written in.' }),
  }),
  run(context, { body: { type, settings: patch, locale, code } }, app) {
    const { store } = context
    const settings = patch === undefined ? done(app.settings) : patched(context, app, patch)
    if (!settings.ok) return settings
    const chosen = locale === undefined ? null : chooseLanguage(locale)
    const place = choosePlace(settings.value, type, code)
    const token = place === 'first' ? sampleCode : undefined
    const content = {
      ...(place !== 'none' && { code: sampleCode }),
      ...(place === 'first' && { codeFirst: true as const }),
      ...(chosen !== null && { locale: chosen }),
      to: sampleAddress,
      url: sampleUrl(settings.value, token) ?? `https://example.com/auth?token=${token ?? 'sample'}`,
      organisationName: 'Example Organisation',
      inviterName: 'Sam Example',
      messageIdDomain: 'example.com',
    }
    return done(
      renderEmail({
        app: settings.value,
        type,
        content,
        expiresAt: store.now() + sampleLifeMs,
        lifeLeftMs: sampleLifeMs,
      }),
    )
  },
})

function patched(context: Context, { settings, status }: App, patch: unknown): Result<AppSettings> {
  const merged = checkSchema(AppBody, mergePatch({ ...settings, status }, patch))
  const parsed = merged.ok
    ? parseSettings(merged.value, { ...context, givesDomains: isServiceAdmin(context.access) })
    : merged
  if (parsed.ok) return done(parsed.value)
  return invalid(parsed.issues.map((issue) => ({ ...issue, field: `settings.${issue.field}` })))
}
