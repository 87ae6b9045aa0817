/** A change of an app's settings, and the settings after it. */
import { type AppSettings, parseAppSettings } from '../domain/app/settings.ts'
import { locales } from '../templates/locales/locales.ts'
import { done, type Result, refuse } from './result.ts'

type Optional = 'envelopeFrom' | 'replyTo' | 'supportContact' | 'fallbackUrl'

/** Settings that are not named stay. Null removes an optional setting. */
export type SettingsChange = Partial<
  Pick<AppSettings, 'name' | 'from' | 'allowLocalhost' | 'hostedLinks' | 'locale'>
> & {
  readonly [Name in Optional]?: string | null
} & {
  readonly branding?: { readonly [Name in keyof AppSettings['branding']]?: string | null }
  readonly limits?: Partial<AppSettings['limits']>
  readonly addAllowedUrls?: readonly string[]
  readonly removeAllowedUrls?: readonly string[]
  readonly addAppSchemes?: readonly string[]
  readonly removeAppSchemes?: readonly string[]
  readonly linkDestinations?: Readonly<Record<string, string>>
  readonly removeLinkDestinations?: readonly string[]
}

/** The changed settings, checked as a whole. */
export function changeSettings(base: AppSettings, change: SettingsChange): Result<AppSettings> {
  const absent =
    firstAbsent(base.allowedUrls, change.removeAllowedUrls) ??
    firstAbsent(base.appSchemes, change.removeAppSchemes)
  if (absent !== null) return refuse('invalid', absent)
  const parsed = parseAppSettings(applyChange(base, change), Object.keys(locales))
  if (parsed.ok) return done(parsed.value)
  const lines = parsed.issues.map((issue) => `  ${issue.field}: ${issue.message}`)
  return refuse('invalid', `these settings are refused:\n${lines.join('\n')}`)
}

function firstAbsent(entries: readonly string[], removed: readonly string[] = []): string | null {
  const absent = removed.find((entry) => !entries.includes(entry))
  if (absent === undefined) return null
  return `"${absent}" is not among ${entries.join(', ') || 'the entries: there are none'}`
}

function applyChange(base: AppSettings, change: SettingsChange): AppSettings {
  const {
    addAllowedUrls = [],
    removeAllowedUrls = [],
    addAppSchemes = [],
    removeAppSchemes = [],
    linkDestinations = {},
    removeLinkDestinations = [],
    branding = {},
    limits = {},
    ...rest
  } = change
  const kept = Object.entries(base.linkDestinations).filter(
    ([type]) => !removeLinkDestinations.includes(type),
  )
  return {
    ...(withoutNulls({ ...base, ...rest }) as AppSettings),
    allowedUrls: [...without(base.allowedUrls, removeAllowedUrls), ...addAllowedUrls],
    appSchemes: [...without(base.appSchemes, removeAppSchemes), ...addAppSchemes],
    linkDestinations: { ...Object.fromEntries(kept), ...linkDestinations },
    branding: withoutNulls({ ...base.branding, ...branding }),
    limits: { ...base.limits, ...limits },
  }
}

const without = (all: readonly string[], removed: readonly string[]) =>
  all.filter((entry) => !removed.includes(entry))

const withoutNulls = (values: object): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
