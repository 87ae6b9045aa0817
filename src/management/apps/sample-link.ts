/** A link and an address for emails that no app asked for. */
import type { AllowedUrl } from '../../domain/app/allowed-url.ts'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'

/** How long the link of such an email lives, in milliseconds. */
export const sampleLifeMs = 900_000

export const sampleAddress = 'someone@example.com' as EmailAddress

/** A link that the app allows; it leads nowhere. Null if the app allows none. */
export function sampleUrl(app: App): string | null {
  const { allowedUrls, appSchemes, allowLocalhost } = appPolicy(app)
  const [entry = appSchemes[0]] = allowedUrls
  if (entry !== undefined) return `${withinEntry(entry)}?token=test-email`
  return allowLocalhost ? 'http://localhost/?token=test-email' : null
}

function withinEntry({ scheme, authority, wildcard, path, prefix }: AllowedUrl): string {
  const below = prefix ? `${path ?? '/'}test` : (path ?? '/test')
  return `${scheme}://${wildcard ? 'test.' : ''}${authority ?? 'test'}${below}`
}
