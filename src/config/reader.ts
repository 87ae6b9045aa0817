/** How the parsers of the configuration read a variable and report a fault. */
import { defaultOf, type Mode, type NeededSetting, type SettingName, settings } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export type Reader = {
  readonly mode: Mode
  readonly fault: (text: string) => void
  readonly isSet: (name: SettingName) => boolean
  /** The trimmed value, or the default of the mode; '' if it has none. */
  readonly text: (name: SettingName) => string
  /** As `text`. If there is neither, a fault with an example is reported. */
  readonly required: (name: NeededSetting) => string
}

/** Empty and blank values count as missing. */
export const isSet = (env: Environment, name: string): boolean => (env[name]?.trim() ?? '') !== ''

export function newReader(env: Environment, mode: Mode, faults: string[]): Reader {
  const text = (name: SettingName): string => env[name]?.trim() || defaultOf(name, mode)
  return {
    mode,
    fault: (fault) => void faults.push(fault),
    isSet: (name) => isSet(env, name),
    text,
    required: (name) => {
      if (text(name) === '') faults.push(`${name} is missing: ${settings[name].example}`)
      return text(name)
    },
  }
}

/** A whole number above 0. */
export function readWhole({ fault, text }: Reader, name: SettingName): number {
  const value = text(name)
  if (!/^[1-9]\d{0,9}$/.test(value)) fault(`${name} must be a whole number above 0`)
  return Number(value)
}

/** How to write a user, password or key in a URL; docs/configuration.md has the same list. */
export const urlEscapes =
  'in a user, password or key write @ : / ? # % & , and a space as %40 %3A %2F %3F %23 %25 %26 %2C %20'

/** Percent signs decoded; a text that is not percent-encoded is taken as it is. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
