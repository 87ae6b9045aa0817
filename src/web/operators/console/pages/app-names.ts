/** The slugs of the apps that somebody sees, by id. */
import type { Visit } from '../visit.ts'

export type Slugs = ReadonlyMap<string, string>

export async function readSlugs({ get }: Visit): Promise<Slugs> {
  const { slugs } = await get('app.names', {})
  return new Map(Object.entries(slugs))
}

/** The apps of a token or a person, as text. */
export const describeScope = (apps: readonly string[] | null, slugs: Slugs): string =>
  apps === null ? 'the whole service' : apps.map((id) => slugs.get(id) ?? id).join(', ')
