/** The settings of an app, and what is derived from their table: types, defaults, order. */
import type { Setting, SettingGroup, SettingValues } from './setting.ts'
import { settingsTable } from './settings-table.ts'

/** Settings as an operator gives them and the store keeps them: plain JSON. */
export type AppSettings = SettingValues<typeof settingsTable>

type Defaulted = {
  [Name in keyof AppSettings as undefined extends AppSettings[Name] ? never : Name]: AppSettings[Name]
}

type Entry = Setting | SettingGroup

export const settingEntries = Object.entries(settingsTable) as [keyof AppSettings, Entry][]

/** All settings by their paths, such as `limits.daily`. */
export const settingsByPath: ReadonlyMap<string, Setting> = new Map(
  settingEntries.flatMap(([name, entry]): [string, Setting][] =>
    'fields' in entry
      ? Object.entries(entry.fields).map(([field, inner]) => [`${name}.${field}`, inner])
      : [[name, entry]],
  ),
)

/** Undefined for a setting that must be given, or may be absent. */
function defaultOf(entry: Entry): unknown {
  if (!('fields' in entry)) return entry.default
  const fields = Object.entries(entry.fields)
  if (fields.some(([, field]) => field.default === undefined && !field.isOptional)) return undefined
  return Object.fromEntries(
    fields.map(([name, field]) => [name, field.default]).filter(([, value]) => value !== undefined),
  )
}

export const defaultSettings = Object.fromEntries(
  settingEntries.map(([name, entry]) => [name, defaultOf(entry)]).filter(([, value]) => value !== undefined),
) as Omit<Defaulted, 'name' | 'from'>

/** The value at a path; undefined if it is absent. */
export const readSetting = (given: AppSettings, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], given)

/** The settings that only an admin of the app, or of the whole service, may change. */
export const settingsFor = (role: 'admin' | 'service'): (keyof AppSettings)[] =>
  settingEntries.filter(([, entry]) => entry.role === role).map(([name]) => name)

/** Those of an app that an earlier version stored lack a setting that is new: it has its default. */
export const withDefaults = (stored: AppSettings): AppSettings => inOrder({ ...defaultSettings, ...stored })

/** The same settings in the order of the table, so that equal settings are equal JSON. */
export const inOrder = (given: AppSettings): AppSettings => order(settingsTable, given) as AppSettings

function order(table: Readonly<Record<string, Entry>>, values: object): object {
  const given = values as Readonly<Record<string, unknown>>
  const present = Object.entries(table).filter(([name]) => given[name] !== undefined)
  return Object.fromEntries(
    present.map(([name, entry]) => {
      const value = given[name]
      if ('fields' in entry) return [name, order(entry.fields, value as object)]
      return [name, entry.keys === undefined ? value : pick(value as object, entry.keys)]
    }),
  )
}

const pick = (values: object, names: readonly string[]): object =>
  Object.fromEntries(
    names
      .map((name) => [name, (values as Readonly<Record<string, unknown>>)[name]])
      .filter(([, value]) => value !== undefined),
  )
