/** Saves settings of an app from a form. The form sends the version that it was made of, so that no change of somebody else is lost. */
import type { AppResource } from '../../../management/resources.ts'
import type { Refusal } from '../../../management/result.ts'
import { hiddenFields } from '../parts.ts'
import { PageRefused, type Visit } from '../visit.ts'

export const versionField = ({ version }: AppResource) => hiddenFields({ version: String(version) })

/** A field that is left empty is taken away. */
export const optional = (text: string | null): string | null => (text?.trim() ? text.trim() : null)

/** Null if it was saved. */
export async function saveApp(visit: Visit, app: AppResource, body: object): Promise<Refusal | null> {
  const version = Number(visit.form.get('version'))
  const ifVersion = Number.isInteger(version) && version > 0 ? version : app.version
  const changed = await visit.call('app.change', { params: { app: app.slug }, body, ifVersion })
  if (changed.ok) return null
  const { refusal } = changed
  if (refusal.code === 'not_found') throw new PageRefused(refusal)
  if (refusal.code !== 'version_mismatch') return refusal
  const message =
    'Somebody else changed the app meanwhile. The form shows it as it is now; make your change again.'
  return { ...refusal, message }
}
