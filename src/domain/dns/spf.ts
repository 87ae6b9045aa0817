/**
 * The SPF record of a domain (RFC 7208): its syntax, and its cost, which receivers bound. Judged for a sender
 * that only a term for all senders matches, so that the terms before it count.
 */
import { fail, findAddresses, type Lookup, ok, type Verdict, warn, withoutMarks } from './lookup.ts'
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
}

const lookupsMax = 10
const voidMax = 2
const mxMax = 10
/** Servers of an MX whose addresses are looked for. */
const mxSeen = 3
const recordMax = 4096

const qualifiers: Readonly<Record<string, SpfResult>> = { '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' }

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

const shownMax = 60
const mechanisms = ['a', 'all', 'exists', 'include', 'ip4', 'ip6', 'mx', 'ptr']

/** A term behind `all`, `redirect=` beside it, or a modifier that was meant as a mechanism (`include=`). */
function findIgnored(texts: readonly string[]): string | null {
  const all = texts.findIndex((text) => /^[+?~-]?all$/i.test(text))
  const isIgnored = (text: string, at: number): boolean => {
    const [name = '', ...value] = text.toLowerCase().split('=')
    if (value.length > 0) return mechanisms.includes(name) || (name === 'redirect' && all >= 0)
    return all >= 0 && at > all
  }
  return texts.find((text, at) => at > 0 && isIgnored(text, at))?.slice(0, shownMax) ?? null
}

export async function judgeSpf(domain: string, lookup: Lookup): Promise<SpfJudgement> {
  const walk = new SpfWalk(lookup)
  const judge = (result: SpfResult, fault = ''): SpfJudgement => ({
    ...{ result, fault, record: walk.record, includes: walk.includes, lookups: walk.lookups },
    allows: walk.allows,
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
  /spf ?1|v ?= ?spf/i.test(text) || (/spf/i.test(text) && !/^spf2\.0/i.test(text) && /all|include|ip4|ip6/i.test(text))

type Path = {
  readonly names: readonly string[]
  /** Whether a match here makes the whole record pass. */
  readonly passes: boolean
}

class SpfWalk {
  readonly #lookup: Lookup
  readonly includes = new Set<string>()
  lookups = 0
  record: string | null = null
  /** Says that a macro decides; null without one. */
  macro: string | null = null
  allows = false
  #voids = 0

  constructor(lookup: Lookup) {
    this.#lookup = lookup
  }

  async evaluate(domain: string, path: Path = { names: [], passes: true }): Promise<SpfResult> {
    const here = { ...path, names: [...path.names, toName(domain)] }
    const record = await this.#findRecord(domain)
    if (path.names.length === 0) this.record = record
    if (record === null || !isRecord(record)) return 'none'
    const terms = parseRecord(record)
    for (const term of terms) {
      const passes = here.passes && term.qualifier === '+'
      if (await this.#matches(term, { ...here, passes })) return qualifiers[term.qualifier] ?? 'pass'
    }
    const redirect = terms.find(({ name }) => name === 'redirect=')
    if (redirect === undefined) return 'neutral'
    const { argument } = redirect
    this.#addLookup()
    if (this.#isMacro(argument)) return 'neutral'
    const target = await this.#follow(argument, here)
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
  async #matches({ argument, isWide, name }: Term, path: Path): Promise<boolean> {
    if (['all', 'ip4', 'ip6'].includes(name)) this.allows ||= path.passes
    if (!['include', 'a', 'mx', 'ptr', 'exists'].includes(name)) return isWide
    this.#addLookup()
    const target = argument === '' ? (path.names.at(-1) ?? '') : argument
    if (this.#isMacro(target) || name === 'ptr') {
      this.allows ||= path.passes
      return false
    }
    if (name !== 'include') {
      const hasServers = await this.#hasServers(name, target)
      this.allows ||= path.passes && hasServers
      return hasServers && (isWide || name === 'exists')
    }
    const result = await this.#follow(target, path)
    if (result === 'none') throw broken(`"include:${target}" has no SPF record`)
    return result === 'pass'
  }

  async #hasServers(name: string, target: string): Promise<boolean> {
    const answer = await this.#lookup(target, name === 'mx' ? 'MX' : 'A')
    if (answer.kind === 'unknown') throw new Stop('unknown', `DNS did not answer (${answer.reason})`)
    if (answer.kind === 'absent') {
      // A receiver asks for the addresses of the sender's kind; "exists" asks for IPv4 alone.
      const isSixAlone = name === 'a' && (await this.#lookup(target, 'AAAA')).kind !== 'absent'
      if (!isSixAlone) this.#addVoid()
      return isSixAlone
    }
    if (name !== 'mx') return true
    if (answer.records.length > mxMax) throw broken(`"mx" of ${target} has more than ${mxMax} servers`)
    const servers = answer.records.map((record) => record.split(' ')[1] ?? '').filter(Boolean)
    const found = await Promise.all(servers.slice(0, mxSeen).map((server) => findAddresses(server, this.#lookup)))
    return found.some(({ kind }) => kind !== 'absent')
  }

  /** Records that lead back to themselves use up the look-ups of every receiver. */
  async #follow(target: string, path: Path): Promise<SpfResult> {
    if (path.names.includes(toName(target))) throw broken(`it leads back to ${target}, without an end`)
    if (path.passes) this.includes.add(toName(target))
    return await this.evaluate(target, path)
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
  const { allows, fault, includes, record, result } = judgement
  const texts = record?.split(' ').filter(Boolean) ?? []
  const ignored = findIgnored(texts)
  switch (result) {
    case 'none':
      if (record === null)
        return fail(
          include === null
            ? 'There is no SPF record: publish the one that your provider documents; for a server of your own, "v=spf1 ip4:" and its address, then " ~all".'
            : 'There is no SPF record.',
        )
      return fail(
        `Receivers do not recognize the SPF record: it must begin with "v=spf1" and a space${withoutMarks(record)}.`,
      )
    case 'permerror':
      return fail(`Receivers cannot use the SPF record: ${fault}.`)
    case 'unknown':
      return { result: 'unknown', message: `The SPF record was not judged: ${fault}.` }
    case 'pass':
      return warn(
        'The record allows every server ("+all", or a term that all match), so it proves nothing: remove that, and end it with "~all".',
      )
    default:
      if (!allows)
        return fail(
          `The record authorizes no server, so SPF fails for every email: ${include === null ? 'add your relay to it' : `add "include:${include}" after "v=spf1"`}.`,
        )
      if (ignored !== null)
        return warn(`Receivers ignore "${ignored}" in the record: write mechanisms with a colon, in front of "all".`)
      if (include !== null && !includes.has(include))
        return warn(`The record lacks "include:${include}", which the provider of your relay asks for.`)
      if (texts.some((text) => /^[+?~-]?ptr(?:[:/]|$)/i.test(text)))
        return warn('The record uses "ptr", which RFC 7208 (section 5.5) advises against: list the servers instead.')
      return result === 'neutral'
        ? warn('The record says nothing about other servers: end it with "~all".')
        : ok('Receivers can follow the record.')
  }
}
