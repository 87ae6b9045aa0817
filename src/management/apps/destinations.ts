/**
 * Whether a change of an app sends people, mail or data to another place than before, or makes its keys work
 * again. Taking an entry away does not.
 */
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { mergePatch } from '../settings-schema.ts'

/**
 * The settings that say where to, by what a stolen session could gain: readers, replies, tokens, recipients.
 */
const readDestinations = (settings: Partial<AppSettings>) => ({
  from: settings.from?.address,
  senderDomains: settings.senderDomains,
  envelopeFrom: settings.envelopeFrom,
  replyTo: settings.replyTo,
  supportContact: settings.supportContact,
  allowedUrls: settings.allowedUrls,
  appSchemes: settings.appSchemes,
  allowLocalhost: settings.allowLocalhost,
  linkDestinations: settings.linkDestinations,
  webhookUrl: settings.webhookUrl,
  hooks: settings.hooks,
  fallbackUrl: settings.fallbackUrl,
  logoUrl: settings.branding?.logoUrl,
})

/** @param patch a merge patch, checked against the schema of the operation alone */
export function sendsElsewhere({ settings, status }: App, patch: unknown): boolean {
  const merged = mergePatch({ ...settings, status }, patch) as Partial<AppSettings> & { status?: unknown }
  // A patch that removes the status gives it its default.
  if (status !== 'active' && (merged.status ?? 'active') === 'active') return true
  return isWidened(readDestinations(settings), readDestinations(merged))
}

/** Whether `after` holds a place that `before` lacks. */
function isWidened(before: unknown, after: unknown): boolean {
  if (after === undefined || after === null || after === false) return false
  if (Array.isArray(after)) return after.some((entry) => !(Array.isArray(before) && before.includes(entry)))
  if (typeof after !== 'object') return before !== after
  const known = (before ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(after).some(([name, value]) => isWidened(known[name], value))
}
