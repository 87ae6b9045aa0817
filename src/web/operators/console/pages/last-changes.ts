/** Beside a setting: who changed it last, and when. */
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html } from '../../../../templates/html.ts'
import { age } from '../parts.ts'
import type { Visit } from '../visit.ts'
import { findChanges } from './audit-changes.ts'
import type { SettingPaths } from './change.ts'

/** Changes of an app that are looked through; an older one is in its history. */
const changesMax = 100

/** By the names of the form's fields. */
export async function readLastChanges<Name extends string>(
  { get, now }: Visit,
  { slug }: AppResource,
  paths: SettingPaths<Name>,
): Promise<Partial<Record<Name, Html>>> {
  const { items } = await get('audit.list', { query: { app: slug, action: 'app.update', limit: changesMax } })
  const notes: Partial<Record<Name, Html>> = {}
  for (const entry of items) {
    const changed = new Set(findChanges(entry).map(({ path }) => path))
    for (const name of Object.keys(paths) as Name[])
      if (changed.has(paths[name])) notes[name] ??= html`Changed by ${entry.actor.name}, ${age(entry.at, now)}`
  }
  return notes
}
