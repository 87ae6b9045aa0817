/** A link and an address for emails that no app asked for. */
import type { EmailAddress } from '../request/email-address.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from './allowed-entry.ts'
import type { AppSettings } from './settings.ts'

/** How long the link of such an email lives, in milliseconds. */
export const sampleLifeMs = 900_000

export const sampleAddress = 'someone@example.com' as EmailAddress

/** A link that the app allows; it leads nowhere. Null if the app allows none. */
export function sampleUrl(
  { allowedUrls, allowLocalhost, appSchemes }: Pick<AppSettings, 'allowedUrls' | 'allowLocalhost' | 'appSchemes'>,
  token = 'test-email',
): string | null {
  const entry = [...allowedUrls.map(parseAllowedUrl), ...appSchemes.map(parseAppScheme)].find(({ ok }) => ok)
  if (entry?.ok) return `${withinEntry(entry.value)}?token=${token}`
  return allowLocalhost ? `http://localhost/?token=${token}` : null
}

function withinEntry({ scheme, authority, wildcard, path, prefix }: AllowedUrl): string {
  const below = prefix ? `${path ?? '/'}test` : (path ?? '/test')
  return `${scheme}://${wildcard ? 'test.' : ''}${authority ?? 'test'}${below}`
}
