/** The settings of an app, and what is derived from their table: types, schemas, defaults, order. */
import type { Static, TObject } from 'typebox'
import { type Setting, type SettingGroup, schemasOf } from './setting.ts'
import { settingsTable } from './settings-table.ts'

/** JSON schemas of types alone: `parseAppSettings` has the rules, and reports every fault. */
export const settingsFields = schemasOf(settingsTable)

type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value

/** Settings as an operator gives them and the store keeps them: plain JSON. */
export type AppSettings = DeepReadonly<Static<TObject<typeof settingsFields>>>

type Defaulted = {
  [Name in keyof AppSettings as undefined extends AppSettings[Name] ? never : Name]: AppSettings[Name]
}

type Entry = Setting | SettingGroup
const entries = Object.entries(settingsTable) as [keyof AppSettings, Entry][]

export const defaultSettings = Object.fromEntries(
  entries.flatMap(([name, entry]) => (entry.default === undefined ? [] : [[name, entry.default]])),
) as Omit<Defaulted, 'name' | 'from'>

/** All settings by their paths, such as `limits.daily`. */
export const settingsByPath: ReadonlyMap<string, Setting> = new Map(
  entries.flatMap(([name, entry]): [string, Setting][] =>
    'fields' in entry
      ? Object.entries(entry.fields).map(([field, inner]) => [`${name}.${field}`, inner])
      : [[name, entry]],
  ),
)

/** The value at a path; undefined if it is absent. */
export const readSetting = (given: AppSettings, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], given)

/** The settings that only an admin of the app, or of the whole service, may change. */
export const settingsFor = (role: 'admin' | 'service'): (keyof AppSettings)[] =>
  entries.filter(([, entry]) => entry.role === role).map(([name]) => name)

/** The same settings in the order of the table, so that equal settings are equal JSON. */
export const inOrder = (given: AppSettings): AppSettings =>
  order({ properties: settingsFields as Ordered['properties'] }, given) as AppSettings

type Ordered = { readonly properties?: Readonly<Record<string, Ordered>> | undefined }

function order({ properties }: Ordered, value: unknown): unknown {
  if (properties === undefined) return value
  const given = value as Readonly<Record<string, unknown>>
  const present = Object.entries(properties).filter(([name]) => given[name] !== undefined)
  return Object.fromEntries(present.map(([name, schema]) => [name, order(schema, given[name])]))
}
