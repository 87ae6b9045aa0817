/**
 * The SPF record of a domain (RFC 7208): its syntax, and its cost, which receivers bound. Judged for a sender
 * that only a term for all senders matches, so that the terms before it count.
 */
import { type Lookup, type Verdict, withoutMarks } from './lookup.ts'
import { parseTerm, type Term } from './spf-term.ts'

/** As RFC 7208 names them; `unknown`: DNS did not answer, or a macro decides. */
type SpfResult = 'none' | 'permerror' | 'pass' | 'fail' | 'softfail' | 'neutral' | 'unknown'

export type SpfJudgement = {
  readonly result: SpfResult
  readonly record: string | null
  /** The fault; empty if there is none. */
  readonly fault: string
  /** The domains whose senders it allows, also by way of others: in small letters, without a last dot. */
  readonly includes: ReadonlySet<string>
  readonly lookups: number
  /** Whether mail from some server passes. */
  readonly allows: boolean
  readonly usesPtr: boolean
}

const lookupsMax = 10
const voidMax = 2
const mxMax = 10
/** Includes of includes; the bound on look-ups is reached before. */
const recordMax = 4096

const qualifiers: Readonly<Record<string, SpfResult>> = {
  ...{ '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' },
}

/** A fault of the record or of DNS ends the judgement. */
class Stop extends Error {
  readonly result: 'permerror' | 'unknown'

  constructor(result: 'permerror' | 'unknown', message: string) {
    super(message)
    this.result = result
  }
}

const broken = (message: string) => new Stop('permerror', message)

const toName = (domain: string): string => domain.toLowerCase().replace(/\.$/, '')

function parseRecord(record: string): readonly Term[] {
  const [, ...texts] = record.split(' ').filter((text) => text !== '')
  const terms = texts.map((text) => {
    const term = parseTerm(text)
    if (typeof term === 'string') throw broken(term)
    return term
  })
  for (const modifier of ['redirect=', 'exp='])
    if (terms.filter(({ name }) => name === modifier).length > 1) throw broken(`it has two "${modifier}"`)
  return terms
}

export async function judgeSpf(domain: string, lookup: Lookup): Promise<SpfJudgement> {
  const walk = new SpfWalk(lookup)
  const judge = (result: SpfResult, fault = ''): SpfJudgement => ({
    ...{ result, fault, record: walk.record, includes: walk.includes, lookups: walk.lookups },
    ...{ allows: walk.allows, usesPtr: walk.usesPtr },
  })
  try {
    const result = await walk.evaluate(domain)
    return judge(walk.macro === null || result === 'none' ? result : 'unknown', walk.macro ?? '')
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    return judge(error.result, error.message)
  }
}

const isRecord = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

/** A text that was meant as a record, and is none for receivers: in quotes, without `v=`, `v=spf1;`. */
const resemblesRecord = (text: string): boolean =>
  /spf/i.test(text) && !/^spf2\.0/i.test(text) && /all|include|ip4|ip6|redirect/i.test(text)

/** How the walk came to a record. */
type Path = {
  readonly names: readonly string[]
  /** Whether a sender that passes here passes the whole. */
  readonly allows: boolean
}

class SpfWalk {
  readonly #lookup: Lookup
  readonly includes = new Set<string>()
  lookups = 0
  record: string | null = null
  /** Says that a macro decides; null without one. */
  macro: string | null = null
  allows = false
  usesPtr = false
  #voids = 0

  constructor(lookup: Lookup) {
    this.#lookup = lookup
  }

  /** @param path the domains whose records led here, and whether a pass here is one of the whole */
  async evaluate(domain: string, path: Path = { names: [], allows: true }): Promise<SpfResult> {
    const here = { ...path, names: [...path.names, toName(domain)] }
    const record = await this.#findRecord(domain)
    if (path.names.length === 0) this.record = record
    if (record === null || !isRecord(record)) return 'none'
    const terms = parseRecord(record)
    for (const term of terms) {
      const allows = here.allows && term.qualifier === '+' && !term.name.endsWith('=')
      if (await this.#matches(term, { ...here, allows })) {
        if (allows) this.allows = true
        return qualifiers[term.qualifier] ?? 'pass'
      }
    }
    const redirect = terms.find(({ name }) => name === 'redirect=')
    if (redirect === undefined) return 'neutral'
    const { argument } = redirect
    this.#addLookup()
    if (this.#isMacro(argument)) return 'neutral'
    this.#enter(argument, here)
    this.includes.add(toName(argument))
    const target = await this.evaluate(argument, here)
    if (target === 'none') throw broken(`"redirect=${argument}" leads to a domain without SPF`)
    return target
  }

  async #findRecord(domain: string): Promise<string | null> {
    const answer = await this.#lookup(domain, 'TXT')
    if (answer.kind === 'unknown') throw new Stop('unknown', `DNS did not answer (${answer.reason})`)
    const all = answer.kind === 'found' ? answer.records : []
    const [record, ...more] = all.filter(isRecord)
    if (more.length > 0) throw broken(`${domain} has two SPF records, so receivers use none: leave one`)
    if (record !== undefined && record.length > recordMax) throw broken(`the record of ${domain} is too long`)
    return record ?? all.find(resemblesRecord) ?? null
  }

  /** Whether a term matches all senders. Counts its look-ups, and notes if it allows some. */
  async #matches({ argument, isWide, name, qualifier }: Term, path: Path): Promise<boolean> {
    if (!['include', 'a', 'mx', 'ptr', 'exists'].includes(name)) {
      this.allows ||= path.allows && name.startsWith('ip')
      return isWide
    }
    this.#addLookup()
    const target = argument === '' ? (path.names.at(-1) ?? '') : argument
    this.usesPtr ||= name === 'ptr'
    if (this.#isMacro(target) || name === 'ptr') {
      this.allows ||= path.allows
      return false
    }
    if (name !== 'include') {
      const hasServers = await this.#hasServers(name, target)
      this.allows ||= path.allows && hasServers
      return hasServers && (isWide || name === 'exists')
    }
    this.#enter(target, path)
    if (qualifier === '+') this.includes.add(toName(target))
    const result = await this.evaluate(target, path)
    if (result === 'none') throw broken(`"include:${target}" has no SPF record`)
    return result === 'pass'
  }

  async #hasServers(name: string, target: string): Promise<boolean> {
    const answer = await this.#lookup(target, name === 'mx' ? 'MX' : 'A')
    if (answer.kind === 'unknown') throw new Stop('unknown', `DNS did not answer (${answer.reason})`)
    // A receiver asks for the addresses of the sender's kind; "exists" asks for IPv4 alone.
    if (answer.kind === 'absent' && (name !== 'a' || (await this.#lacksIpv6(target)))) this.#addVoid()
    if (name === 'mx' && answer.kind === 'found' && answer.records.length > mxMax)
      throw broken(`"mx" of ${target} has more than ${mxMax} servers`)
    return answer.kind === 'found'
  }

  /** Records that lead back to themselves use up the look-ups of every receiver. */
  #enter(target: string, { names }: Path): void {
    if (names.includes(toName(target))) throw broken(`it leads back to ${target}, without an end`)
  }

  async #lacksIpv6(name: string): Promise<boolean> {
    return (await this.#lookup(name, 'AAAA')).kind === 'absent'
  }

  #addLookup(): void {
    this.lookups += 1
    if (this.lookups > lookupsMax)
      throw broken(`it needs more than ${lookupsMax} look-ups, so receivers do not follow it`)
  }

  #addVoid(): void {
    this.#voids += 1
    if (this.#voids > voidMax) throw broken(`more than ${voidMax} of its names do not exist`)
  }

  #isMacro(target: string): boolean {
    if (!target.includes('%')) return false
    this.macro = 'it has a macro, whose value depends on the sender'
    return true
  }
}

/** @param include the domain that the relay's provider asks for; null if none is known */
export function toSpfVerdict(judgement: SpfJudgement, include: string | null): Verdict {
  const { allows, fault, includes, record, result, usesPtr } = judgement
  switch (result) {
    case 'none':
      return record === null
        ? { result: 'fail', message: 'There is no SPF record: publish one that names your relay.' }
        : {
            result: 'fail',
            message: `Receivers see no SPF record: it has to begin with "v=spf1" and a space${withoutMarks(record)}.`,
          }
    case 'permerror':
      return { result: 'fail', message: `Receivers cannot use the SPF record: ${fault}.` }
    case 'unknown':
      return { result: 'unknown', message: `The SPF record was not judged: ${fault}.` }
    case 'pass':
      return {
        result: 'warn',
        message:
          'The record allows every server ("+all", or a term that all match), so it proves nothing: remove that, and end it with "~all".',
      }
    default:
      if (!allows)
        return {
          result: 'fail',
          message: `The record allows no server at all, so no mail passes: ${include === null ? 'name your relay in it' : `put "include:${include}" in front of its "all"`}.`,
        }
      if (include !== null && !includes.has(include))
        return {
          result: 'warn',
          message: `The record lacks "include:${include}", which the provider of your relay asks for.`,
        }
      if (usesPtr)
        return {
          result: 'warn',
          message:
            'The record has "ptr", which receivers may skip (RFC 7208, section 5.5): name the servers.',
        }
      return result === 'neutral'
        ? {
            result: 'warn',
            message: 'The record says nothing about other servers: end it with "~all".',
          }
        : { result: 'ok', message: 'Receivers can follow the record.' }
  }
}
