/**
 * Whether a change of an app sends people, mail or data to another place than before, or makes its keys work
 * again. Taking an entry away does not.
 */
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { mergePatch } from '../settings-schema.ts'

/** Every setting but those that send nobody and nothing anywhere. */
function readDestinations(settings: Partial<AppSettings>) {
  const { name, allowCodes, supersede, formOfAddress, words, hostedLinks, locale, limits, from, branding, ...places } =
    settings
  return { ...places, from: from?.address, logoUrl: branding?.logoUrl }
}

/** @param patch a merge patch, checked against the schema of the operation alone */
export function sendsElsewhere({ settings, status }: App, patch: unknown): boolean {
  // A patch that removes the status gives it its default.
  const { status: wanted = 'active', ...merged } = mergePatch({ ...settings, status }, patch) as Partial<
    AppSettings & Pick<App, 'status'>
  >
  return (status !== 'active' && wanted === 'active') || isWidened(readDestinations(settings), readDestinations(merged))
}

/** Whether `after` holds a place that `before` lacks. */
function isWidened(before: unknown, after: unknown): boolean {
  if (after === undefined || after === null || after === false) return false
  if (Array.isArray(after)) return after.some((entry) => !(Array.isArray(before) && before.includes(entry)))
  if (typeof after !== 'object') return before !== after
  const known = (before ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(after).some(([name, value]) => isWidened(known[name], value))
}
