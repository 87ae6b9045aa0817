/** Renders one of an app's emails with sample content, with settings as they are or as they would be. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { emailTypes } from '../../domain/request/email-request.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { operation } from '../operation/operation.ts'
import { done, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppBody, AppPatch, mergePatch, parseSettings } from '../settings-schema.ts'
import { sampleAddress, sampleLifeMs, sampleUrl } from './sample-link.ts'

export const previewEmail = operation({
  method: 'POST',
  path: '/v1/apps/{app}/preview',
  role: 'reader',
  target: 'app',
  summary: 'Renders an email of the app with sample content. Sends and stores nothing.',
  body: closed({ type: Type.Enum([...emailTypes]), settings: Type.Optional(AppPatch) }),
  answer: closed({ subject: Type.String(), html: Type.String(), text: Type.String() }),
  run({ store }, { body: { type, settings: patch } }, app) {
    const settings = patch === undefined ? done(app.settings) : patched(app, patch)
    if (!settings.ok) return settings
    const content = {
      to: sampleAddress,
      url: sampleUrl({ ...app, settings: settings.value }) ?? 'https://example.com/auth?token=sample',
      organisationName: 'Example Organisation',
      inviterName: 'Sam Example',
      messageIdDomain: 'example.com',
    }
    const rendered = renderEmail({
      app: settings.value,
      type,
      content,
      expiresAt: store.now() + sampleLifeMs,
      lifeLeftMs: sampleLifeMs,
    })
    return done({ subject: rendered.subject, html: rendered.html, text: rendered.text })
  },
})

function patched({ settings, status }: App, patch: unknown): Result<AppSettings> {
  const merged = checkSchema(AppBody, mergePatch({ ...settings, status }, patch))
  const parsed = merged.ok ? parseSettings(merged.value) : merged
  if (parsed.ok) return done(parsed.value)
  return invalid(parsed.issues.map((issue) => ({ ...issue, field: `settings.${issue.field}` })))
}
