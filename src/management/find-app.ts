/** Finds an app by its id or slug. */
import type { App } from '../domain/app/app.ts'
import type { Store } from '../store/store.ts'
import { done, type Result, refuse } from './result.ts'

export async function findApp(store: Pick<Store, 'findApp'>, idOrSlug: string): Promise<Result<App>> {
  const app = await store.findApp(idOrSlug)
  if (app !== null) return done(app)
  return refuse('not_found', `there is no app "${idOrSlug}"; "postern app list" shows them`)
}
