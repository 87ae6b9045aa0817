/** The part of an app that judges its requests. */
import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { valuesOf } from '../parsed.ts'
import type { EmailAddress } from '../request/email-address.ts'
import { parseAllowedUrl, parseAppScheme } from './allowed-url.ts'
import type { App } from './app.ts'
import type { HostedLinkPolicy } from './hosted-link.ts'

/** The settings that judge a request, parsed once per version of the app. */
export type AppPolicy = HostedLinkPolicy &
  Pick<App, 'id' | 'version'> & {
    readonly fromAddress: EmailAddress
    /** Whether its emails show the one-time codes of its requests. */
    readonly allowCodes: boolean
    /** Whether a newer email cancels an older one that waits, with the same kind of link. */
    readonly supersede: boolean
    /** Its name, for invitations that name no organisation. */
    readonly name: string
    readonly authHooks: AuthHookSettings
    /** The app's own language. */
    readonly locale: string
  }

/**
 * The policy of settings that were checked when they were set. An entry that no longer follows the
 * rules (the list of public suffixes grows) is left out, so that it allows nothing.
 */
export function appPolicy({
  id,
  version,
  slug,
  settings,
}: Pick<App, 'id' | 'version' | 'slug' | 'settings'>): AppPolicy {
  const appSchemes = valuesOf(settings.appSchemes.map(parseAppScheme))
  const { allowCodes, allowLocalhost, hostedLinks, linkDestinations, supersede } = settings
  return {
    id,
    version,
    slug,
    hostedLinks,
    linkDestinations,
    allowCodes,
    allowLocalhost,
    supersede,
    allowedUrls: valuesOf(settings.allowedUrls.map(parseAllowedUrl)),
    appSchemes,
    schemes: new Set(appSchemes.map((entry) => entry.scheme)),
    name: settings.name,
    authHooks: settings.authHooks ?? {},
    fromAddress: settings.from.address as EmailAddress,
    locale: settings.locale,
  }
}
