/** The slugs of the apps that somebody sees, by id, and which of them are disabled. */
import type { Visit } from '../visit.ts'

export type Slugs = ReadonlyMap<string, string>

export const readSlugs = async (visit: Visit): Promise<Slugs> => (await readApps(visit)).slugs

/** `disabled`: ids. */
export async function readApps({
  get,
}: Visit): Promise<{ readonly slugs: Slugs; readonly disabled: ReadonlySet<string> }> {
  const { slugs, disabled } = await get('app.names', {})
  return { slugs: new Map(Object.entries(slugs)), disabled: new Set(disabled) }
}

/** Keys whose names one page reads. */
const namedMax = 50

/** The names of keys by their ids, without those that are deleted with their app. */
export async function readKeyNames({ call }: Visit, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(
    [...new Set(ids)].slice(0, namedMax).map((key) => call('key.show', { params: { key } })),
  )
  return new Map(found.flatMap((key) => (key.ok ? [[key.value.id, key.value.name ?? 'unnamed'] as const] : [])))
}

/** The apps of a token or a person, as text. */
export const describeScope = (apps: readonly string[] | null, slugs: Slugs): string =>
  apps === null ? 'the whole service' : apps.map((id) => slugs.get(id) ?? id).join(', ')
