/** The slugs of the apps that somebody sees, by id. */
import { isInScope } from '../../../../management/operation/access.ts'
import type { Visit } from '../visit.ts'

export type Slugs = ReadonlyMap<string, string>

export async function slugsOf({ access, management }: Visit): Promise<Slugs> {
  const apps = await management.store.listApps()
  const seen = apps.filter(({ id }) => isInScope(access, id))
  return new Map(seen.map(({ id, slug }) => [id, slug]))
}

/** The apps of a token or a person, as text. */
export const scopeOf = (apps: readonly string[] | null, slugs: Slugs): string =>
  apps === null ? 'the whole service' : apps.map((id) => slugs.get(id) ?? id).join(', ')
