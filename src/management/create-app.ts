/** Creates an app. */
import { type App, parseSlug, slugFrom } from '../domain/app/app.ts'
import { defaultSettings } from '../domain/app/settings.ts'
import type { Store } from '../store/store.ts'
import { done, type Result, refuse } from './result.ts'
import { changeSettings, type SettingsChange } from './settings-change.ts'

export type NewApp = {
  readonly name: string
  readonly from: { readonly name: string; readonly address: string }
  /** Made from the name unless given. */
  readonly slug?: string
  readonly settings: SettingsChange
}

export async function createApp(store: Pick<Store, 'createApp'>, app: NewApp): Promise<Result<App>> {
  const { name, from } = app
  const settings = changeSettings({ ...defaultSettings, name, from }, app.settings)
  if (!settings.ok) return settings
  const slug = app.slug ?? slugFrom(name)
  if (slug === null || !parseSlug(slug).ok)
    return refuse('invalid', 'give a slug of a-z, 0-9 and inner hyphens with --slug')
  const created = await store.createApp(slug, settings.value)
  if (created === null) return refuse('taken', `the slug "${slug}" is taken; choose another with --slug`)
  return done(created)
}
