/** Changes an app by what its settings are now, such as one more entry of its allow-list. */
import { appChangeTriesMax } from '../domain/bounds.ts'
import { fail, type Result } from './operation/result.ts'
import type { CallInput, OperationRunner } from './operations.ts'
import type { AppResource } from './resources.ts'

/** When another change comes between reading and writing, this one is applied to the new settings. */
export async function updateApp(
  { call }: OperationRunner,
  name: string,
  toPatch: (app: AppResource) => CallInput<'app.change'>['body'],
): Promise<Result<AppResource>> {
  for (let tries = 0; tries < appChangeTriesMax; tries++) {
    const found = await call('app.show', { params: { app: name } })
    if (!found.ok) return found
    const { id, version } = found.value
    const body = toPatch(found.value)
    const changed = await call('app.change', { params: { app: id }, body, ifVersion: version })
    if (changed.ok || changed.error.code !== 'version_mismatch') return changed
  }
  return fail('app_changing', `Others keep changing the app "${name}"; try again.`)
}
