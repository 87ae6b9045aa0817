/** The part of an app that judges its requests. */
import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { valuesOf } from '../parsed.ts'
import type { EmailAddress } from '../request/email-address.ts'
import { parseAllowedUrl, parseAppScheme } from './allowed-entry.ts'
import type { App } from './app.ts'
import type { HostedLinkPolicy } from './hosted-link.ts'
import type { AppSettings } from './settings.ts'

/** The settings that judge a request, parsed once per version of the app. */
export type AppPolicy = HostedLinkPolicy &
  Pick<App, 'id' | 'version'> &
  Pick<AppSettings, 'allowCodes' | 'locale' | 'name' | 'supersede'> & {
    readonly fromAddress: EmailAddress
    /** The domain of new hosted links; null for that of the service. */
    readonly linkDomain: string | null
    readonly authHooks: AuthHookSettings
  }

/**
 * The policy of settings that were checked when they were set. An entry that no longer follows the
 * rules (the list of public suffixes grows) is left out, so that it allows nothing.
 */
export function appPolicy(app: Pick<App, 'id' | 'version' | 'slug' | 'settings'>): AppPolicy {
  const { settings } = app
  const appSchemes = valuesOf(settings.appSchemes.map(parseAppScheme))
  return {
    id: app.id,
    version: app.version,
    slug: app.slug,
    name: settings.name,
    fromAddress: settings.from.address as EmailAddress,
    allowedUrls: valuesOf(settings.allowedUrls.map(parseAllowedUrl)),
    appSchemes,
    schemes: new Set(appSchemes.map((entry) => entry.scheme)),
    allowLocalhost: settings.allowLocalhost,
    allowCodes: settings.allowCodes,
    supersede: settings.supersede,
    hostedLinks: settings.hostedLinks,
    linkDestinations: settings.linkDestinations,
    linkDomain: (settings.useLinkDomain && settings.linkDomain) || null,
    authHooks: settings.authHooks ?? {},
    locale: settings.locale,
  }
}
