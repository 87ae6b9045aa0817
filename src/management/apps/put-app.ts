/** Creates an app, or replaces all settings of one. */
import { Type } from 'typebox'
import { type App, parseSlug } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import type { AppId } from '../../domain/id.ts'
import { type Context, operation } from '../operation.ts'
import { AppResource, presentApp } from '../resources.ts'
import { done, invalid, type Result, refuse } from '../result.ts'
import { AppBody, settingsOf } from '../settings-schema.ts'
import { dryRunQuery, staleVersion } from './change-app.ts'

export const putApp = operation({
  method: 'PUT',
  path: '/v1/apps/{slug}',
  role: 'admin',
  target: 'service',
  summary: 'Creates an app, or replaces all its settings. Repeating it changes nothing.',
  query: Type.Object(dryRunQuery, { additionalProperties: false }),
  body: AppBody,
  answer: AppResource,
  creates: true,
  versioned: true,
  refusals: ['slug_taken', 'version_mismatch', 'app_changing'],
  async run(context, { params: { slug }, query, body, ifVersion, ifAbsent = false }) {
    const valid = parseSlug(slug)
    if (!valid.ok) return invalid(valid.issues)
    if (body.slug !== undefined && body.slug !== slug) {
      const message = `It must be "${slug}", as in the address, or left out. The slug of an app never changes.`
      return invalid([{ field: 'slug', code: 'slug_differs', message }])
    }
    const settings = settingsOf(body)
    if (!settings.ok) return invalid(settings.issues)
    const found = await context.store.findApp(slug)
    const wanted = {
      slug,
      settings: settings.value,
      status: body.status ?? found?.status ?? 'active',
    } as const
    if (found !== null && ifAbsent) return slugTaken(slug)
    if (found === null && ifVersion !== undefined) return staleVersion(null)
    if (query.dryRun === true) return dryRun(context, found, wanted)
    return found === null ? create(context, wanted) : replace(context, found, { ...wanted, ifVersion })
  },
})

type Wanted = Pick<App, 'slug' | 'settings' | 'status'>

const slugTaken = (slug: string) =>
  refuse('slug_taken', `The slug "${slug}" is taken by another app; choose another one.`)

async function create(
  { store, access }: Context,
  { slug, settings, status }: Wanted,
): Promise<Result<AppResource>> {
  const app = await store.createApp(slug, settings, access.actor, status)
  return app === null ? slugTaken(slug) : done(presentApp(app), { created: true })
}

async function replace(
  { store, access }: Context,
  { id }: App,
  { settings, status, ifVersion }: Wanted & { ifVersion: number | undefined },
): Promise<Result<AppResource>> {
  const change = { settings, status, ...(ifVersion !== undefined && { ifVersion }) }
  const app = await store.updateApp(id, change, access.actor)
  if (app === 'stale') return staleVersion(await store.findApp(id))
  if (app === null)
    return refuse('app_changing', 'The app was deleted at this moment; repeat the request to create it.')
  return done(presentApp(app))
}

const noId = `app_${'0'.repeat(26)}` as AppId

/** The app as it would be. The id of a new app is all zeros. */
function dryRun({ store }: Context, found: App | null, { slug, settings, status }: Wanted) {
  const now = store.now()
  const base = found ?? { id: noId, slug, version: 1, createdAt: now, updatedAt: now }
  return done(presentApp({ ...base, settings: settings as AppSettings, status }), { created: found === null })
}
