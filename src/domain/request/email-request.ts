/**
 * The request's body (spec 2.1, 2.2): bytes → `EmailRequest`, or every fault in it. Types are never
 * coerced, null means absent, unknown fields are ignored. The link stays raw text here: its rules
 * depend on the app (`auth-link.ts`).
 */
import { isUtf8 } from 'node:buffer'
import { deceptive, isDeceptive } from '../controls.ts'
import { type Issue, type Parsed, parsed, refused, refuser } from '../parsed.ts'
import { type EmailAddress, parseEmailAddress } from './email-address.ts'
import type { Purpose } from './email-content.ts'
import { type EmailType, emailKinds, emailTypes } from './email-kinds.ts'
import { parseCode } from './one-time-code.ts'
import { parseTimestamp } from './timestamp.ts'

/** A body that follows the rules. `expiresAt` in milliseconds since 1970 UTC. */
export type EmailRequest = {
  readonly to: EmailAddress
  readonly type: EmailType
  readonly url: string
  readonly expiresAt: number
  /** The languages that are asked for, as they were written; empty if that is no text. Never a fault. */
  readonly locale?: string
  /** A one-time code; only if the type takes one, and the app allows codes. */
  readonly code?: string
  /** Only of an email that an auth server asked for. */
  readonly purpose?: Purpose
  /** The rule of an auth server that matched its link. */
  readonly rule?: string
  /** Only of a type that has names. */
  readonly organisationName?: string
  readonly inviterName?: string
}

/** A body as the HTTP layer received it. `bytes` is null if there were more than `bodyBytesMax`. */
export type ReceivedBody = {
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  readonly bytes: Uint8Array | null
}

export const bodyBytesMax = 16 * 1024
const nestingMax = 8
const nameMax = { organisationName: 100, inviterName: 254 }
const aliases = { organisationName: 'org_name', inviterName: 'inviter_name' }

type Fields = Record<string, unknown>

export type ParsedBody = {
  /** The raw text of the link: its rules are checked even if the rest is invalid. */
  readonly url: string | undefined
  /** Null if there is none that is valid. */
  readonly to: EmailAddress | null
  /** Without the code, which the settings of an app may ignore. */
  readonly request: Parsed<EmailRequest>
  /** Null if there is none. */
  readonly code: Parsed<string> | null
}

export function parseEmailRequest(body: ReceivedBody, nowMs: number): ParsedBody {
  const fields = parseJsonObject(body)
  if (!fields.ok) return { url: undefined, to: null, request: fields, code: null }
  const own = (name: string) => (Object.hasOwn(fields.value, name) ? (fields.value[name] ?? undefined) : undefined)
  const issues: Issue[] = []
  const keep = <T>(result: Parsed<T>): T | undefined => {
    if (result.ok) return result.value
    issues.push(...result.issues)
    return undefined
  }
  const text = (field: string) => keep(requiredText(field, own(field)))
  const [rawTo, type, url, rawExpiry] = [text('to'), keep(parseType(own('type'))), text('url'), text('expiresAt')]
  const to = rawTo === undefined ? undefined : keep(parseEmailAddress(rawTo, 'to'))
  const expiresAt = rawExpiry === undefined ? undefined : keep(parseExpiry(rawExpiry, nowMs))
  const { hasNames, takesCode } = emailKinds[type ?? 'magic_link']
  const rawCode = own('code')
  const code = rawCode === undefined ? null : parseCode(rawCode, !takesCode)
  const organisationName = keep(parseName('organisationName', own, hasNames))
  const inviterName = keep(parseName('inviterName', own, hasNames))
  if (hasNames && organisationName === '') {
    const message = 'organisationName is required for organisation_invite.'
    issues.push({ field: 'organisationName', code: 'required', message })
  }
  if (issues.length > 0) issues.push(...findMisnamed(fields.value))
  if (issues.length > 0 || to === undefined || type === undefined || url === undefined || expiresAt === undefined) {
    return { url, to: to ?? null, request: refused(...issues), code }
  }
  const names = hasNames && { organisationName: organisationName ?? '', ...(inviterName && { inviterName }) }
  const request = { to, type, url, expiresAt, ...readLocale(own('locale')), ...names }
  return { url, to, request: parsed(request), code }
}

/** An email in another language is better than none: whatever this is, the request is accepted. */
const readLocale = (value: unknown): { locale?: string } =>
  value === undefined ? {} : { locale: typeof value === 'string' ? value : '' }

const contentTypeMax = 200
const contentTypeJson = /^application\/json(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?)?[ \t]*;?$/i

/** The pattern takes linear time; a longer header is not worth it. */
const isJsonType = (contentType: string): boolean =>
  contentType.length <= contentTypeMax && contentTypeJson.test(contentType.trimEnd())

function parseJsonObject({ contentType, contentEncoding, bytes }: ReceivedBody): Parsed<Fields> {
  const refuse = refuser('body')
  if (contentType !== undefined && !isJsonType(contentType))
    return refuse('content_type', 'Send application/json (in UTF-8) as Content-Type.')
  if (contentEncoding !== undefined)
    return refuse('content_encoding', 'Send the body as it is, without Content-Encoding.')
  if (bytes === null) return refuse('body_too_large', `Send at most ${bodyBytesMax} bytes.`)
  if (!isUtf8(bytes)) return refuse('not_utf8', 'The body is not valid UTF-8.')
  const value = parseJson(bytes)
  if (value === undefined) return refuse('not_json', 'The body is not valid JSON.')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse('not_an_object', 'The body must be one JSON object.')
  if (nestedDeeper(value, nestingMax)) return refuse('nested_too_deep', `At most ${nestingMax} levels of nesting.`)
  return parsed(value as Fields)
}

/** Undefined for what is no JSON. */
export function parseJson(utf8: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(utf8.buffer, utf8.byteOffset, utf8.byteLength).toString('utf8'))
  } catch {
    return undefined
  }
}

/** Whether there are more levels of objects and arrays. The work is bounded by the levels. */
export const nestedDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => nestedDeeper(inner, levels - 1)))

/** The fault of a field that is no text. */
const notText = (field: string): Issue => {
  const needed =
    field === 'expiresAt' ? `: an ISO 8601 date and time with its zone, such as "2026-11-20T17:05:00Z".` : '.'
  return { field, code: 'not_a_string', message: `${field} must be a JSON string${needed}` }
}

const fieldNames = ['to', 'type', 'url', 'expiresAt', 'locale', 'code', ...Object.entries(aliases).flat()]
const foldName = (name: string): string => name.toLowerCase().replace(/[_-]/g, '')
const rightNames: ReadonlyMap<string, string> = new Map([
  ...fieldNames.map((name): [string, string] => [foldName(name), name]),
  ['organizationname', 'organisationName'],
  ['expiresin', 'expiresAt'],
  ['idempotencykey', 'Idempotency-Key'],
])
const misnamedMax = 40

/**
 * Fields that differ from a known name in case, `_` or `-`, one for each known name. They are ignored like
 * any unknown field, so they are no fault by themselves; they explain why a request is refused.
 */
function findMisnamed(fields: Fields): Issue[] {
  const found = new Map<string, Issue>()
  for (const name of Object.keys(fields)) {
    if (name.length > misnamedMax || fieldNames.includes(name)) continue
    const field = rightNames.get(foldName(name))
    if (field === undefined) continue
    const advice = field === 'Idempotency-Key' ? `send the header ${field}` : `write "${field}"`
    const message = `The field "${name}" is unknown and ignored: ${advice}.`
    found.set(field, { field, code: 'misnamed_field', message })
  }
  return [...found.values()]
}

function requiredText(field: string, value: unknown): Parsed<string> {
  if (value === undefined || value === '') return refuser(field)('required', `${field} is required.`)
  return typeof value === 'string' ? parsed(value) : refused(notText(field))
}

function parseType(value: unknown): Parsed<EmailType> {
  const text = requiredText('type', value)
  if (!text.ok) return text
  const known = emailTypes.find((type) => type === text.value)
  return known === undefined
    ? refuser('type')('unknown_type', `Must be one of ${emailTypes.join(', ')}.`)
    : parsed(known)
}

function parseExpiry(raw: string, nowMs: number): Parsed<number> {
  const expiry = parseTimestamp(raw, 'expiresAt')
  if (!expiry.ok || expiry.value > nowMs) return expiry
  const [given, now] = [expiry.value, nowMs].map((ms) => new Date(ms).toISOString())
  const message = `The link must expire in the future: it expired at ${given}, and it is ${now} here. Check the clock of the machine that made the request.`
  return refuser('expiresAt')('in_the_past', message)
}

/** The name of an invitation as an end user wrote it; undefined if it breaks the rules for names. */
export function readName(field: keyof typeof aliases, text: string | undefined): string | undefined {
  const name = parseName(field, (given) => (given === field ? text : undefined), true)
  return name.ok && name.value !== '' ? name.value : undefined
}

/**
 * A name under either of its spellings (spec 2.1); '' if it is absent or blank. Attackers put text into names
 * (invitation spam): in an invitation they are bounded and plain.
 */
function parseName(field: keyof typeof aliases, own: (name: string) => unknown, invites: boolean): Parsed<string> {
  const refuse = refuser(field)
  const [value, alias] = [own(field), own(aliases[field])]
  if ([value, alias].some((name) => name !== undefined && typeof name !== 'string')) return refused(notText(field))
  if (value !== undefined && alias !== undefined && value !== alias)
    return refuse('alias_conflict', `Give ${field} or ${aliases[field]}, or the same in both.`)
  const name = (value ?? alias ?? '') as string
  if (!invites) return parsed('')
  if (!name.isWellFormed()) return refuse('lone_surrogate', 'The name is not valid Unicode.')
  const normal = name.normalize('NFC')
  if ([...normal].length > nameMax[field]) return refuse('too_long', `At most ${nameMax[field]} characters.`)
  if (isDeceptive(normal) || normal.includes('://'))
    return refuse('forbidden_character', `A name must not contain ${deceptive}, or "://".`)
  return parsed(normal.trim())
}
