/** Creates an app, or replaces all settings of one. */
import type { TObject } from 'typebox'
import { type App, parseSlug } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { appChangeTriesMax } from '../../domain/bounds.ts'
import type { AppId } from '../../domain/id.ts'
import type { Issue } from '../../domain/parsed.ts'
import { always, type Context, forAdmins, type Input, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'
import { AppBody, parseSettings } from '../settings-schema.ts'
import { dryRunQuery, staleVersion } from './change-app.ts'

export const putApp = operation({
  ...forAdmins,
  method: 'PUT',
  path: '/v1/apps/{app}',
  target: 'none',
  summary: 'Creates an app, or replaces all its settings. Repeating it changes nothing.',
  query: closed(dryRunQuery),
  body: AppBody,
  answer: AppResource,
  outlives: always,
  creates: true,
  versioned: true,
  errors: ['slug_taken', 'version_mismatch', 'app_changing'],
  async run(context, input) {
    for (let tries = 0; tries < appChangeTriesMax; tries++) {
      const result = await put(context, input)
      if (result !== 'stale') return result
    }
    return appChanging()
  },
})

type PutInput = Input<'/v1/apps/{app}', TObject<typeof dryRunQuery>, typeof AppBody>

/** `stale`: another change came between reading and writing, of which the request does not know. */
async function put(
  context: Context,
  { params: { app: slug }, query, body, ifVersion, ifAbsent = false }: PutInput,
): Promise<Result<AppResource> | 'stale'> {
  const found = await context.store.findApp(slug)
  const settings = parseSettings(keepDomains(body, found), { ...context, givesDomains: true })
  const issues = [...checkSlug(slug, body.slug), ...(settings.ok ? [] : settings.issues)]
  if (!settings.ok || issues.length > 0) return invalid(issues)
  const status = body.status ?? found?.status ?? 'active'
  const wanted = { slug, settings: settings.value, status } as const
  if (found !== null && ifAbsent) return slugTaken(slug)
  if (ifVersion !== undefined && ifVersion !== found?.version) return staleVersion(found)
  if (query.dryRun === true) return dryRun(context, found, wanted)
  if (found === null) return create(context, wanted, ifAbsent)
  const change = { settings: settings.value, status, ifVersion: found.version }
  const replaced = await context.store.updateApp(found.id, change, context.access.actor)
  if (replaced === 'stale') return 'stale'
  return replaced === null ? appChanging() : done(presentApp(replaced))
}

/** Domains that the body leaves out stay: they may have been proved in DNS since the body was written. */
const keepDomains = (body: AppBody, found: App | null): AppBody => ({
  ...body,
  senderDomains: body.senderDomains ?? [...(found?.settings.senderDomains ?? [])],
})

function checkSlug(slug: string, inBody: string | undefined): readonly Issue[] {
  const valid = parseSlug(slug)
  if (!valid.ok) return valid.issues
  if (inBody === undefined || inBody === slug) return []
  const message = `It must be "${slug}", as in the address, or left out. An app's slug never changes.`
  return [{ field: 'slug', code: 'slug_differs', message }]
}

type WantedApp = Pick<App, 'slug' | 'settings' | 'status'>

const slugTaken = (slug: string) =>
  fail('slug_taken', `The slug "${slug}" is taken by another app; choose another one.`)

async function create(
  { store, access }: Context,
  { slug, settings, status }: WantedApp,
  ifAbsent: boolean,
): Promise<Result<AppResource>> {
  const app = await store.createApp(slug, settings, access.actor, status)
  if (app !== null) return done(presentApp(app), { created: true })
  return ifAbsent ? slugTaken(slug) : appChanging()
}

const appChanging = () => fail('app_changing', 'Another request just created or deleted the app; repeat this one.')

const noId = `app_${'0'.repeat(26)}` as AppId

/** The app as it would be. The id of a new app is all zeros. */
function dryRun({ store }: Context, found: App | null, { slug, settings, status }: WantedApp) {
  const now = store.now()
  const base = found ?? { id: noId, slug, version: 1, createdAt: now, updatedAt: now }
  return done(presentApp({ ...base, settings: settings as AppSettings, status }))
}
