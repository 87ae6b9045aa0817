/** How the parsers of the configuration read a variable and report a fault. */

export type Environment = Readonly<Record<string, string | undefined>>

/** `serve` needs every setting; `dev` and the commands fall back to what dev mode makes in ./.postern. */
export type Mode = 'serve' | 'dev' | 'command'

/** The files of dev mode. */
export const dataFolder = './.postern'
export const devSecretKeysFile = `${dataFolder}/secret-keys`
export const devDatabaseUrl = `sqlite:${dataFolder}/postern.db`

export type Reader = {
  readonly mode: Mode
  readonly fault: (text: string) => void
  /** The trimmed value, or the fallback. */
  readonly text: (name: string, fallback: string) => string
  /** The trimmed value. If it is missing, a fault with an example is reported and the value is ''. */
  readonly required: (name: string, example: string) => string
}

/** Empty and blank values count as missing. */
export const isSet = (env: Environment, name: string): boolean => (env[name]?.trim() ?? '') !== ''

export function newReader(env: Environment, mode: Mode, faults: string[]): Reader {
  const value = (name: string): string => env[name]?.trim() ?? ''
  return {
    mode,
    fault: (text) => void faults.push(text),
    text: (name, fallback) => value(name) || fallback,
    required: (name, example) => {
      if (value(name) === '') faults.push(`${name} is missing: ${example}`)
      return value(name)
    },
  }
}

/** A whole number above 0. */
export function readWhole({ fault, text }: Reader, name: string, fallback: number): number {
  const value = text(name, String(fallback))
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
