/**
 * Reads a hook's body by paths such as `user.email`. Types are never coerced, null and '' mean absent, and
 * every text is bounded. Issues name the path, never a value.
 */
import { type Issue, type Parsed, parsed, refused } from '../parsed.ts'
import { parseEmailAddress } from '../request/email-address.ts'

const textCharactersMax = 8192

export type FieldReader = ReturnType<typeof readFields>

export function readFields(body: unknown) {
  const issues: Issue[] = []
  const refuse = (field: string, code: string, message: string) => {
    issues.push({ field, code, message })
  }
  /** Text that may be absent; anything else than text is an issue. */
  const optional = (path: string): string | undefined => {
    const value = findValue(body, path)
    if (value === undefined) return undefined
    const fault = findFault(value)
    if (fault === null) return value as string
    refuse(path, fault.code, `${path} ${fault.message}`)
    return undefined
  }
  /** Text that must be there; '' with an issue if it is not. */
  const text = (path: string): string => {
    if (findValue(body, path) === undefined) refuse(path, 'required', `${path} is required.`)
    return optional(path) ?? ''
  }
  return {
    text,
    optional,
    /** Text of an end user, such as a name; anything else is left out, without an issue. */
    lenient: (path: string): string | undefined => {
      const value = findValue(body, path)
      return findFault(value) !== null ? undefined : (value as string)
    },
    /** An address that must be there; '' with an issue if it is not. */
    address: (path: string): string => {
      const raw = text(path)
      const address = raw === '' ? null : parseEmailAddress(raw, path)
      if (address?.ok) return address.value
      issues.push(...(address?.issues ?? []))
      return ''
    },
    /** A whole number from 1 to `most`, which must be there; 0 with an issue if it is not. */
    count: (path: string, most: number): number => {
      const value = findValue(body, path)
      if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most) return Number(value)
      if (value === undefined) refuse(path, 'required', `${path} is required.`)
      else refuse(path, 'out_of_range', `${path} must be a whole number from 1 to ${most}.`)
      return 0
    },
    /** A key of the table; null with an issue if it is another text, or none. */
    kind: <Kind extends string>(path: string, kinds: Readonly<Record<Kind, unknown>>): Kind | null => {
      const name = text(path)
      if (Object.hasOwn(kinds, name)) return name as Kind
      if (name !== '') refuse(path, 'unknown_kind', `Postern has no email for this ${path}.`)
      return null
    },
    /** The value, unless there are issues. */
    finish: <T>(value: T): Parsed<T> => (issues.length > 0 ? refused(...issues) : parsed(value)),
  }
}

/** The value at a path of own properties; undefined also for null and ''. */
function findValue(body: unknown, path: string): unknown {
  let value = body
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value === null || value === '' ? undefined : value
}

function findFault(value: unknown): { code: string; message: string } | null {
  if (typeof value !== 'string') return { code: 'not_a_string', message: 'must be a JSON string.' }
  if (value.length > textCharactersMax)
    return { code: 'too_long', message: `has at most ${textCharactersMax} characters.` }
  return value.isWellFormed() ? null : { code: 'lone_surrogate', message: 'is not valid Unicode.' }
}

export function present<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}

/**
 * A link whose query has only characters that a link may have: auth servers put names into it as they are.
 * The rest of the link stays as it came, for the rules for links to judge.
 */
export function escapeQuery(link: string): string {
  const begin = link.indexOf('?') + 1
  if (begin === 0) return link
  const query = link.slice(begin).toWellFormed()
  return link.slice(0, begin) + query.replace(/[^\x21-\x7e]|["#<>\\]/gu, encodeURIComponent)
}
