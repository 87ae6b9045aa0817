/**
 * Saves settings of an app from a form. The form sends the version that it was made of, so that no change of
 * somebody else is lost: if there is another version by now, nothing is saved, and the form shows the app as
 * it is.
 */
import { randomUUID } from 'node:crypto'
import type { Setting } from '../../../../domain/app/setting.ts'
import { readSetting, settingsByPath } from '../../../../domain/app/settings.ts'
import type { OperationError, Result } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html } from '../../../../templates/html.ts'
import type { Fields, FormField } from '../form.ts'
import { hiddenFields } from '../parts.ts'
import { PageFailed, type Visit } from '../visit.ts'

/**
 * The version that the fields were read from: a preview or a refusal keeps it, and shows the fields again. If
 * somebody else has changed the app, the form shows theirs.
 */
export const formVersion = (app: AppResource, given: URLSearchParams, error: OperationError | null): string =>
  (error?.code === 'version_mismatch' ? null : given.get('version')) ?? String(app.version)

export const versionField = (...form: Parameters<typeof formVersion>): Html[] =>
  hiddenFields({ version: formVersion(...form) })

/** A field that is left empty is taken away. */
export const optional = (text: string | null): string | null => (text?.trim() ? text.trim() : null)

/** Settings of an app by the names of their fields in a form: paths such as `limits.daily`. */
export type SettingPaths<Name extends string> = Readonly<Record<Name, string>>

/** The fields of a form for settings. A preview reports faults below `settings`. */
export const settingFields = <Name extends string>(paths: SettingPaths<Name>): Record<Name, FormField> =>
  mapValues(paths, (path) => {
    const { hint, kind, label } = settingsByPath.get(path) ?? { kind: 'text', label: path }
    return {
      label,
      ...(hint !== undefined && { hint }),
      ...(kind === 'whole' && { attributes: number }),
      faults: [path, `settings.${path}`],
    }
  })

const number = html`inputmode="numeric" autocomplete="off"`

export const readSettings = <Name extends string>(app: AppResource, paths: SettingPaths<Name>): Record<Name, string> =>
  mapValues(paths, (path) => String(readSetting(app, path) ?? ''))

/** The merge patch of a form. An optional setting that is left empty is removed. */
export function toSettingsPatch<Name extends string>(texts: Fields, paths: SettingPaths<Name>): object {
  const patch: Record<string, unknown> = {}
  for (const [name, path] of Object.entries<string>(paths)) {
    const [outer = '', inner] = path.split('.')
    const value = toValue(texts[name] ?? '', settingsByPath.get(path))
    patch[outer] = inner === undefined ? value : { ...(patch[outer] as object), [inner]: value }
  }
  return patch
}

function toValue(text: string, setting: Setting | undefined): string | number | null {
  if (setting?.kind === 'whole') return readWhole(text)
  return setting?.isOptional ? optional(text) : text.trim()
}

/** 0, which no limit may be, for what is no whole number: its fault is then found beside those of others. */
export function readWhole(text: string): number {
  const value = Number(text.replaceAll(/[\s,]/g, ''))
  return Number.isSafeInteger(value) ? value : 0
}

const mapValues = <Name extends string, Value>(
  paths: SettingPaths<Name>,
  toOne: (path: string) => Value,
): Record<Name, Value> =>
  Object.fromEntries(Object.entries<string>(paths).map(([name, path]) => [name, toOne(path)])) as Record<Name, Value>

/** Null if it was saved. */
export async function saveApp(visit: Visit, app: AppResource, body: object): Promise<OperationError | null> {
  const version = Number(visit.form.get('version'))
  const ifVersion = Number.isInteger(version) && version > 0 ? version : app.version
  const changed = await visit.call('app.change', { params: { app: app.slug }, body, ifVersion })
  if (changed.ok) return null
  if (changed.error.code === 'not_found') throw new PageFailed(changed.error)
  return changed.error
}

/** A field of a form that makes a secret: `makeOnce` reads it. */
export const onceField = (): Html[] => hiddenFields({ once: randomUUID() })

const sentAgain: OperationError = {
  code: 'invalid_request',
  message:
    'This form was already submitted, and its result was shown then. Nothing was changed this time; open the form again to create another.',
}

/**
 * Answers as `make` does, unless this form has made something before. A form that was refused may be sent
 * again.
 */
export async function makeOnce<T>({ form, forms }: Visit, make: () => Promise<Result<T>>): Promise<Result<T>> {
  const once = form.get('once')
  if (once === null) return make()
  if (!(await forms.spend(once))) return { ok: false, error: sentAgain }
  const made = await make()
  if (!made.ok) await forms.restore(once)
  return made
}

/**
 * The fields of a form that was refused: as they were sent, or, if somebody else changed the app meanwhile,
 * as the app is now, with what was sent beside each field that differs.
 */
export function showAgain(
  saved: Fields,
  given: URLSearchParams,
  error: OperationError | null,
): { readonly fields: Fields; readonly error: OperationError | null } {
  const sent = Object.entries(saved).map(([name, text]) => [name, given.get(name)?.trim() ?? text] as const)
  if (error?.code !== 'version_mismatch') return { fields: Object.fromEntries(sent), error }
  const issues = sent
    .filter(([name, text]) => text !== saved[name])
    .map(([field, text]) => ({
      field,
      code: 'changed_meanwhile',
      message: text === '' ? 'You left it empty.' : `You entered “${text}”.`,
    }))
  const message =
    'Somebody else changed the app in the meantime, so nothing was saved. The form now shows their version; enter your changes again.'
  return { fields: saved, error: { ...error, message, issues } }
}
