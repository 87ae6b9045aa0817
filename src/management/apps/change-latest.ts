/** Changes an app by what it is now. */
import type { App } from '../../domain/app/app.ts'
import { appChangeTriesMax } from '../../domain/bounds.ts'
import type { AppChange } from '../../store/operator-store.ts'
import type { Context } from '../operation/operation.ts'
import { done, fail, type Result } from '../operation/result.ts'
import { type AppResource, presentApp } from '../resources.ts'

/** If another change is written between reading and writing, `toChange` is asked again with the new app. */
export async function changeLatest(
  { access, store }: Context,
  found: App,
  toChange: (app: App) => Result<Omit<AppChange, 'ifVersion'>>,
): Promise<Result<AppResource>> {
  let app: App | null = found
  for (let tries = 0; tries < appChangeTriesMax && app !== null; tries++) {
    const change = toChange(app)
    if (!change.ok) return change
    const changed = await store.updateApp(app.id, { ...change.value, ifVersion: app.version }, access.actor)
    if (changed !== null && changed !== 'stale') return done(presentApp(changed))
    app = await store.findApp(found.id)
  }
  return fail('app_changing', 'Others are changing or deleting the app; check it and try again.')
}
