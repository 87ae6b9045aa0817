/** An app: one product that sends authentication emails through Postern. */
import type { AppId } from '../id.ts'
import { type Parsed, parsed, refuser } from '../parsed.ts'
import type { AppSettings } from './settings.ts'

/**
 * The keys of a disabled or suspended app answer 401, and its queued mail is held. Its own people disable and
 * enable an app; only an admin of the whole service suspends one, and lifts that.
 */
export const appStatuses = ['active', 'disabled', 'suspended'] as const
export type AppStatus = (typeof appStatuses)[number]

/** An app as the store returns it. `version` changes with every change of its settings or status. */
export type App = {
  readonly id: AppId
  readonly slug: string
  readonly version: number
  readonly status: AppStatus
  readonly createdAt: number
  readonly updatedAt: number
  readonly settings: AppSettings
}

export const parseSlug = (slug: string): Parsed<string> =>
  /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(slug) && !/^app-/.test(slug)
    ? parsed(slug)
    : refuser('slug')(
        'malformed_slug',
        'A slug is 1 to 40 of a-z, 0-9 and inner hyphens, and does not begin with app-.',
      )

/** A slug made from an app's name; null where the name has no usable character. */
export function slugFrom(name: string): string | null {
  const plain = name.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '')
  const slug = plain
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '')
  return slug === '' ? null : slug
}
