/** Changes the settings or the status of an app. */
import type { App, AppStatus } from '../domain/app/app.ts'
import type { Store } from '../store/store.ts'
import { findApp } from './find-app.ts'
import { done, type Result, refuse } from './result.ts'
import { changeSettings, type SettingsChange } from './settings-change.ts'

type AppStore = Pick<Store, 'findApp' | 'updateApp'>

/** When another change comes between reading and writing, this one is applied to the new settings. */
const triesMax = 10

export async function updateApp(
  store: AppStore,
  idOrSlug: string,
  change: SettingsChange,
): Promise<Result<App>> {
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await findApp(store, idOrSlug)
    if (!found.ok) return found
    const settings = changeSettings(found.value.settings, change)
    if (!settings.ok) return settings
    const { id, version } = found.value
    const changed = await store.updateApp(id, { settings: settings.value, ifVersion: version })
    if (changed !== 'stale' && changed !== null) return done(changed)
  }
  return refuse('conflict', `the app "${idOrSlug}" is being changed by others; try again`)
}

export async function setAppStatus(
  store: AppStore,
  idOrSlug: string,
  status: AppStatus,
): Promise<Result<App>> {
  const found = await findApp(store, idOrSlug)
  if (!found.ok) return found
  const changed = await store.updateApp(found.value.id, { status })
  if (changed === null || changed === 'stale')
    return refuse('not_found', `the app "${idOrSlug}" has been deleted`)
  return done(changed)
}
