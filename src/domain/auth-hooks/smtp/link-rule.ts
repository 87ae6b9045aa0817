/**
 * A rule tells an email's link by its path:
 *
 *   rule  = ["**"] "/" path ["?" name ["." claim] ["=" value]]
 *
 * `*` is any one segment, and at the end everything below. `**` in front is any folder. With a query, the
 * link needs this parameter, or a JWT in it that has this claim. A route behind `#` counts as a part of the
 * path: `/#/verify-email/`.
 */
import { type Parsed, parsed, refuser } from '../../parsed.ts'

type Claims = Readonly<Record<string, unknown>>

type Condition = { readonly name: string; readonly claim: string | null; readonly value: string | null }

export type LinkRule = {
  readonly segments: readonly string[]
  readonly isAnywhere: boolean
  /** The last `*`: at least one character below. */
  readonly isPrefix: boolean
  readonly condition: Condition | null
}

export const ruleCharactersMax = 200
/** A longer path or query matches no rule. */
const segmentsMax = 64
const queryCharactersMax = 4096

const shape = /^(\*\*)?\/([^?\s]*)(?:\?([\w-]+)(?:\.([\w-]+))?(?:=([^\s&]+))?)?$/

export function parseLinkRule(text: string): Parsed<LinkRule> {
  const match = text.length <= ruleCharactersMax ? shape.exec(text) : null
  const segments = match?.[2]?.split('/') ?? []
  const hasPartialStar = segments.some((segment) => segment !== '*' && segment.includes('*'))
  if (match === null || hasPartialStar || segments.every((segment) => segment === '' || segment === '*'))
    return refuser('rules')(
      'malformed_rule',
      'Write a path with a word in it, such as /reset/*, **/users/confirm/ or /login?action=rp. A star is a whole segment.',
    )
  const [, anywhere, , name, claim = null, value = null] = match
  const isPrefix = segments.at(-1) === '*'
  return parsed({
    segments: isPrefix ? segments.slice(0, -1) : segments,
    isAnywhere: anywhere !== undefined,
    isPrefix,
    condition: name === undefined ? null : { name, claim, value },
  })
}

type Parameter = { readonly value: string; readonly claims: Claims | null }

/** A link as rules see it. */
export type Route = {
  readonly segments: readonly string[]
  /** By name; none if there are too many to read. */
  readonly parameters: ReadonlyMap<string, Parameter>
}

export function readRoute(link: URL): Route {
  const path = link.pathname.slice(1)
  const [, hashed, query = ''] = /^#(!?\/[^?]*)(?:\?(.*))?$/.exec(link.hash) ?? []
  if (hashed === undefined) return { segments: path.split('/'), parameters: readParameters(link.search.slice(1)) }
  return { segments: `${path}#${hashed}`.split('/'), parameters: readParameters(query) }
}

/** The first of several with one name counts. */
function readParameters(query: string): ReadonlyMap<string, Parameter> {
  const read = new Map<string, Parameter>()
  for (const [name, value] of new URLSearchParams(query.length > queryCharactersMax ? '' : query))
    if (!read.has(name)) read.set(name, { value, claims: readClaims(value) })
  return read
}

export function matchesRule({ segments, isAnywhere, isPrefix, condition }: LinkRule, route: Route): boolean {
  const given = route.segments
  // Another link in the path is that of a redirect.
  if (given.length > segmentsMax || given.slice(0, -1).includes('')) return false
  const last = given.length - segments.length - (isPrefix ? 1 : 0)
  const fits = (at: number) =>
    segments.every((segment, n) => segment === '*' || segment === given[at + n]) &&
    (isPrefix ? given[at + segments.length] !== '' : at === last)
  const isPath = isAnywhere ? given.some((_, at) => at <= last && fits(at)) : last >= 0 && fits(0)
  return isPath && (condition === null || meets(condition, route))
}

function meets({ name, claim, value }: Condition, { parameters }: Route): boolean {
  const given = parameters.get(name)
  if (given === undefined) return false
  const found = claim === null ? given.value : given.claims?.[claim]
  return value === null ? found !== undefined : found === value
}

/** The claims of a JWT, whose signature only its maker can check; null for another text. */
function readClaims(text: string): Claims | null {
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(text) ?? []
  if (payload === undefined) return null
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return typeof claims === 'object' && !Array.isArray(claims) ? (claims as Claims | null) : null
  } catch {
    return null
  }
}
