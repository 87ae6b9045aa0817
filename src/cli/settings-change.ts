/** A change of an app's settings, and the settings after it. */
import { normalEntries, parseAllowedUrl, parseAppScheme } from '../domain/app/allowed-url.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import type { HookSettings, HookSystemName } from '../domain/hooks/hook-settings.ts'
import type { SystemSettings } from '../domain/hooks/hook-system.ts'
import type { AppResource } from '../management/resources.ts'
import { CommandFailed } from './output.ts'

type Optional = 'envelopeFrom' | 'replyTo' | 'supportContact' | 'fallbackUrl' | 'webhookUrl'

/** Settings that are not named stay. Null removes an optional setting. */
export type SettingsChange = Partial<
  Pick<
    AppSettings,
    'name' | 'from' | 'allowLocalhost' | 'allowCodes' | 'supersede' | 'hostedLinks' | 'locale'
  >
> & {
  readonly [Name in Optional]?: string | null
} & {
  readonly branding?: { readonly [Name in keyof AppSettings['branding']]?: string | null }
  readonly limits?: Partial<AppSettings['limits']>
  readonly hooks?: readonly HookChange[]
  readonly addSenderDomains?: readonly string[]
  readonly removeSenderDomains?: readonly string[]
  readonly addAllowedUrls?: readonly string[]
  readonly removeAllowedUrls?: readonly string[]
  readonly addAppSchemes?: readonly string[]
  readonly removeAppSchemes?: readonly string[]
  readonly linkDestinations?: Readonly<Record<string, string>>
  readonly removeLinkDestinations?: readonly string[]
}

/** A setting of an auth server, or of one kind of its messages. An empty text removes it. */
type HookChange = {
  readonly system: string
  readonly setting: keyof SystemSettings
  readonly kind: string | null
  readonly text: string
}

/** The settings after a change; those of the allow-list in their normal form. */
export function changeSettings(base: AppSettings, change: SettingsChange): AppSettings {
  const absent =
    firstAbsent(base.senderDomains, change.removeSenderDomains) ??
    firstAbsent(base.allowedUrls, change.removeAllowedUrls) ??
    firstAbsent(base.appSchemes, change.removeAppSchemes)
  if (absent !== null) throw new CommandFailed(absent)
  const changed = applyChange(base, change)
  return {
    ...changed,
    allowedUrls: normalEntries(changed.allowedUrls, parseAllowedUrl),
    appSchemes: normalEntries(changed.appSchemes, parseAppScheme),
  }
}

/** The merge patch that makes a change of an app. */
export function toPatch(app: AppResource, change: SettingsChange): Record<string, unknown> {
  const before: AppSettings = app
  const after = changeSettings(before, change)
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof AppSettings)[]
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  return Object.fromEntries(changed.map((name) => [name, mergeable(before[name], after[name])]))
}

/** A merge patch of objects names what is removed. */
function mergeable(before: unknown, after: unknown): unknown {
  if (after === undefined) return null
  if (typeof after !== 'object' || after === null || Array.isArray(after)) return after
  const known = (before ?? {}) as Readonly<Record<string, unknown>>
  const kept = Object.entries(after).map(([name, value]) => [name, mergeable(known[name], value)])
  const gone = Object.keys(known).filter((name) => !(name in after))
  return Object.fromEntries([...kept, ...gone.map((name) => [name, null])])
}

function firstAbsent(entries: readonly string[], removed: readonly string[] = []): string | null {
  const absent = removed.find((entry) => !entries.includes(entry))
  if (absent === undefined) return null
  return `"${absent}" is not in the list: ${entries.join(', ') || 'it is empty'}`
}

function applyChange(base: AppSettings, change: SettingsChange): AppSettings {
  const {
    addSenderDomains = [],
    removeSenderDomains = [],
    addAllowedUrls = [],
    removeAllowedUrls = [],
    addAppSchemes = [],
    removeAppSchemes = [],
    linkDestinations = {},
    removeLinkDestinations = [],
    branding = {},
    hooks = [],
    limits = {},
    ...rest
  } = change
  const kept = Object.entries(base.linkDestinations).filter(
    ([type]) => !removeLinkDestinations.includes(type),
  )
  return {
    ...(withoutNulls({ ...base, ...rest }) as AppSettings),
    senderDomains: [...without(base.senderDomains, removeSenderDomains), ...addSenderDomains],
    allowedUrls: [...without(base.allowedUrls, removeAllowedUrls), ...addAllowedUrls],
    appSchemes: [...without(base.appSchemes, removeAppSchemes), ...addAppSchemes],
    linkDestinations: { ...Object.fromEntries(kept), ...linkDestinations },
    branding: withoutNulls({ ...base.branding, ...branding }),
    limits: { ...base.limits, ...limits },
    ...(hooks.length > 0 && { hooks: hooks.reduce(changeHook, base.hooks ?? {}) }),
  }
}

function changeHook(hooks: HookSettings, { system, setting, kind, text }: HookChange): HookSettings {
  const own: Readonly<Record<string, unknown>> = hooks[system as HookSystemName] ?? {}
  const value = setting === 'lifeSeconds' && text !== '' ? Number(text) : text
  const next = kind === null ? value : withValue((own[setting] ?? {}) as object, kind, value)
  return withValue(hooks, system, withValue(own, setting, next))
}

/** Without what is empty. */
const withValue = (values: object, name: string, value: unknown): object =>
  Object.fromEntries(Object.entries({ ...values, [name]: value }).filter(([, each]) => !isEmpty(each)))

const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

const without = (all: readonly string[], removed: readonly string[]) =>
  all.filter((entry) => !removed.includes(entry))

const withoutNulls = (values: object): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
