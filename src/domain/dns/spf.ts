/**
 * The SPF record of a domain (RFC 7208): its syntax, and its cost, which receivers bound. Judged for a sender
 * that none of its addresses matches, so that every term counts.
 */
import type { Lookup, Verdict } from './lookup.ts'

/** As RFC 7208 names them; `unknown`: DNS did not answer, or a macro decides. */
type SpfResult = 'none' | 'permerror' | 'pass' | 'fail' | 'softfail' | 'neutral' | 'unknown'

export type SpfJudgement = {
  readonly result: SpfResult
  readonly record: string | null
  /** The fault; empty if there is none. */
  readonly fault: string
  /** The domains that it includes, also by way of others, in small letters. */
  readonly includes: ReadonlySet<string>
  readonly lookups: number
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

export async function judgeSpf(domain: string, lookup: Lookup): Promise<SpfJudgement> {
  const walk = new SpfWalk(lookup)
  const judge = (result: SpfResult, fault = ''): SpfJudgement => ({
    ...{ result, fault, record: walk.record, includes: walk.includes, lookups: walk.lookups },
  })
  try {
    const result = await walk.evaluate(domain)
    return judge(walk.macro === null || result === 'none' ? result : 'unknown', walk.macro ?? '')
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    return judge(error.result, error.message)
  }
}

class SpfWalk {
  readonly #lookup: Lookup
  readonly includes = new Set<string>()
  lookups = 0
  record: string | null = null
  /** Says that a macro decides; null without one. */
  macro: string | null = null
  #voids = 0

  constructor(lookup: Lookup) {
    this.#lookup = lookup
  }

  async evaluate(domain: string): Promise<SpfResult> {
    const record = await this.#findRecord(domain)
    this.record ??= record
    if (record === null) return 'none'
    const terms = record
      .split(' ')
      .filter((term) => term !== '')
      .slice(1)
      .map(parseTerm)
    const redirects = terms.filter(({ name }) => name === 'redirect')
    if (redirects.length > 1) throw broken('it has two "redirect="')
    for (const { argument, name, qualifier } of terms) {
      if (name === 'all') return qualifiers[qualifier] ?? 'pass'
      await this.#count(name, argument, domain)
    }
    const [redirect] = redirects
    if (redirect === undefined) return 'neutral'
    this.#addLookup()
    if (this.#isMacro(redirect.argument)) return 'neutral'
    const target = await this.evaluate(redirect.argument)
    if (target === 'none') throw broken(`"redirect=${redirect.argument}" leads to a domain without SPF`)
    return target
  }

  async #findRecord(domain: string): Promise<string | null> {
    const answer = await this.#lookup(domain, 'TXT')
    if (answer.kind === 'unknown') throw new Stop('unknown', `DNS did not answer (${answer.reason})`)
    const all = answer.kind === 'found' ? answer.records : []
    const [record, ...more] = all.filter((text) => /^v=spf1(?: |$)/i.test(text))
    if (more.length > 0) throw broken(`${domain} has two SPF records, so receivers use none: leave one`)
    if (record !== undefined && record.length > recordMax) throw broken(`the record of ${domain} is too long`)
    return record ?? null
  }

  /** The look-ups of one term, for a sender that it does not match. */
  async #count(name: string, argument: string, domain: string): Promise<void> {
    if (!['include', 'a', 'mx', 'ptr', 'exists'].includes(name)) return
    this.#addLookup()
    const target = argument === '' ? domain : argument
    if (this.#isMacro(target) || name === 'ptr') return
    if (name === 'include') {
      this.includes.add(target.toLowerCase())
      if ((await this.evaluate(target)) === 'none') throw broken(`"include:${target}" has no SPF record`)
      return
    }
    const answer = await this.#lookup(target, name === 'mx' ? 'MX' : 'A')
    if (answer.kind === 'unknown') throw new Stop('unknown', `DNS did not answer (${answer.reason})`)
    if (answer.kind === 'absent' && (name === 'mx' || (await this.#lacksIpv6(target)))) this.#addVoid()
    if (name === 'mx' && answer.kind === 'found' && answer.records.length > mxMax)
      throw broken(`"mx" of ${target} has more than ${mxMax} servers`)
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

type Term = { readonly name: string; readonly qualifier: string; readonly argument: string }

const isIPv4 = (text: string): boolean =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255)

const isIPv6 = (text: string): boolean =>
  /^[0-9A-Fa-f:.]{2,45}$/.test(text) && URL.canParse(`http://[${text}]/`)

const domainSpec = /^(?:[A-Za-z0-9_-]{1,63}\.)+[A-Za-z0-9-]{1,63}\.?$/
const macroSpec = /^[!-~]{1,253}$/

function parseTerm(term: string): Term {
  const modifier = /^([A-Za-z][A-Za-z0-9_.-]*)=(.*)$/.exec(term)
  if (modifier !== null) {
    const name = (modifier[1] ?? '').toLowerCase()
    const argument = modifier[2] ?? ''
    if (name === 'redirect') requireDomain(argument, term)
    return { name, qualifier: '+', argument }
  }
  const [, qualifier = '', mechanism = '', rest = ''] = /^([+?~-]?)([A-Za-z0-9]+)(.*)$/.exec(term) ?? []
  const name = mechanism.toLowerCase()
  return { name, qualifier: qualifier || '+', argument: parseArgument(name, rest, term) }
}

function parseArgument(name: string, rest: string, term: string): string {
  switch (name) {
    case 'all':
      if (rest !== '') throw broken(`"${cut(term)}" is no term of SPF`)
      return ''
    case 'include':
    case 'exists':
      return requireDomain(rest.startsWith(':') ? rest.slice(1) : '', term)
    case 'ptr':
      return rest === '' ? '' : requireDomain(rest.startsWith(':') ? rest.slice(1) : '', term)
    case 'a':
    case 'mx': {
      const [, target, four, six] = /^(?::([^/]+))?(?:\/(\d{1,2}))?(?:\/\/(\d{1,3}))?$/.exec(rest) ?? [
        null,
        '',
        '99',
      ]
      if (Number(four ?? 0) > 32 || Number(six ?? 0) > 128) throw broken(`"${cut(term)}" is no term of SPF`)
      return target === undefined ? '' : requireDomain(target, term)
    }
    case 'ip4':
    case 'ip6': {
      const [address = '', prefix = '0', ...more] = rest.slice(1).split('/')
      const [isAddress, max] = name === 'ip4' ? [isIPv4(address), 32] : [isIPv6(address), 128]
      const isNetwork = /^\d{1,3}$/.test(prefix) && Number(prefix) <= max && more.length === 0
      if (!rest.startsWith(':') || !isAddress || !isNetwork) throw broken(`"${cut(term)}" is no network`)
      return ''
    }
    default:
      throw broken(`"${cut(term)}" is no term of SPF`)
  }
}

function requireDomain(text: string, term: string): string {
  if (domainSpec.test(text) || (text.includes('%') && macroSpec.test(text))) return text
  throw broken(`"${cut(term)}" names no domain`)
}

const shownMax = 60
const cut = (term: string): string => term.replace(/[^!-~]/g, '?').slice(0, shownMax)

/** @param include the domain that the relay's provider asks for; null if none is known */
export function toSpfVerdict({ fault, includes, result }: SpfJudgement, include: string | null): Verdict {
  switch (result) {
    case 'none':
      return { result: 'fail', message: 'There is no SPF record: publish one that names your relay.' }
    case 'permerror':
      return { result: 'fail', message: `Receivers cannot use the SPF record: ${fault}.` }
    case 'unknown':
      return { result: 'unknown', message: `The SPF record was not judged: ${fault}.` }
    case 'pass':
      return {
        result: 'warn',
        message: 'The record allows every server ("+all"), so it proves nothing: end it with "~all".',
      }
    case 'neutral':
      return {
        result: 'warn',
        message: 'The record says nothing about other servers: end it with "~all".',
      }
    default:
      return include === null || includes.has(include)
        ? { result: 'ok', message: 'Receivers can follow the record.' }
        : {
            result: 'warn',
            message: `The record lacks "include:${include}", which the provider of your relay asks for.`,
          }
  }
}
