/**
 * DMARC (RFC 9989): the record that applies to a domain, and the organisational domain, both by a walk up the
 * DNS from the domain to its top, of at most eight look-ups.
 */
import { fail, type Lookup, ok, unknown, type Verdict, warn, withoutMarks } from './lookup.ts'
import { readTags } from './tags.ts'

type Tags = ReadonlyMap<string, string>
type Step =
  | { readonly kind: 'record'; readonly name: string; readonly text: string; readonly tags: Tags }
  | {
      /** `unrecognised`: for receivers it is no record, and they look further up. */
      readonly kind: 'fault' | 'unrecognised'
      readonly name: string
      readonly text: string
      readonly message: string
    }

export type DmarcWalk = {
  /** From the domain upwards. */
  readonly steps: readonly Step[]
  readonly organisation: string
  /** Why the walk is not complete; null if it is. */
  readonly unknown: string | null
}

/** After the domain itself, the walk goes on with so many labels at most. */
const labelsMax = 7

export function listWalk(domain: string): string[] {
  const labels = domain.split('.')
  const start = Math.max(1, labels.length - labelsMax)
  return [domain, ...labels.slice(start).map((_, n) => labels.slice(start + n).join('.'))]
}

export async function walkDmarc(domain: string, lookup: Lookup): Promise<DmarcWalk> {
  const steps: Step[] = []
  for (const name of listWalk(domain)) {
    const answer = await lookup(`_dmarc.${name}`, 'TXT')
    if (answer.kind === 'unknown') return { steps, organisation: domain, unknown: answer.reason }
    const step = answer.kind === 'found' ? readStep(name, answer.records) : null
    if (step === null) continue
    steps.push(step)
    const psd = step.kind === 'record' ? step.tags.get('psd') : undefined
    if (psd === 'n') return { steps, organisation: name, unknown: null }
    // A suffix that sends mail itself is its own organisation.
    if (psd === 'y') return { steps, organisation: findChild(domain, name), unknown: null }
  }
  const last = steps.findLast(({ kind }) => kind === 'record')
  return { steps, organisation: last?.name ?? domain, unknown: null }
}

/** The name one label below `parent` on the way to `domain`; `domain` if that is `parent`. */
const findChild = (domain: string, parent: string): string =>
  domain
    .split('.')
    .slice(-(parent.split('.').length + 1))
    .join('.')

/** A text that was meant as a record, and is none for receivers: in quotes, or without a `;`. */
const resemblesRecord = (text: string): boolean =>
  /dmarc1|\bp ?= ?(?:none|quarantine|reject)\b/i.test(text) && !/verif/i.test(text)

function readStep(name: string, records: readonly string[]): Step | null {
  const found = records.filter((record) => /^v[ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/.test(record))
  const [text = records.find(resemblesRecord), ...more] = found
  if (text === undefined) return null
  const fault = (message: string): Step => ({ kind: 'fault', name, text, message })
  if (more.length > 0) return fault('There are two DMARC records, so receivers use none: leave one.')
  if (found.length === 0) {
    const message = `Receivers do not recognize the DMARC record: it must begin with "v=DMARC1;"${withoutMarks(text)}.`
    return { kind: 'unrecognised', name, text, message }
  }
  const read = readTags(text)
  if (read === null) return fault('The DMARC record is not a list of "name=value; …", or has a name twice: correct it.')
  const tags = new Map(read)
  for (const [tag, values] of Object.entries(choices)) {
    const value = tags.get(tag)?.toLowerCase()
    if (value === undefined) continue
    if (!values.includes(value))
      return fault(`The DMARC record has "${tag}=" with another value than ${values.join(', ')}: correct it.`)
    tags.set(tag, value)
  }
  return { kind: 'record', name, text, tags }
}

const policies = ['none', 'quarantine', 'reject']
const choices: Readonly<Record<string, readonly string[]>> = {
  ...{ p: policies, sp: policies, np: policies, adkim: ['r', 's'], aspf: ['r', 's'] },
  ...{ psd: ['y', 'n', 'u'], t: ['y', 'n'] },
}

/**
 * The record that receivers apply: of the domain, or else of its organisation, or of the suffix above. If
 * there is none, one with a fault.
 */
export const findPolicy = ({ organisation, steps }: DmarcWalk, domain: string): Step | null =>
  steps.find(({ kind, name }) => kind !== 'unrecognised' && name === domain) ??
  steps.find(({ kind, name }) => kind !== 'unrecognised' && name === organisation) ??
  steps.find((step) => step.kind === 'record' && step.tags.get('psd') === 'y') ??
  steps.find(({ kind }) => kind !== 'record') ??
  null

export function judgeDmarc(walk: DmarcWalk, domain: string): Verdict {
  const policy = findPolicy(walk, domain)
  if (policy !== null && policy.kind !== 'record') return fail(policy.message)
  // The record of the domain itself needs none above it.
  if (walk.unknown !== null && policy?.name !== domain) return unknown(walk.unknown)
  if (policy === null)
    return warn('There is no DMARC record. Gmail, Yahoo and Outlook refuse senders of much mail without one.')
  const own = walk.steps.find(({ kind, name }) => kind === 'unrecognised' && name === domain)
  if (own !== undefined)
    return warn(
      `Receivers do not recognize the text at _dmarc.${domain}, and apply the record of ${policy.name}: correct or remove it.`,
    )
  const { tags } = policy
  if (tags.get('t') === 'y') return warn('The record has "t=y": receivers do not enforce its policy yet.')
  if (tags.has('pct')) return warn('The record has "pct=", which receivers ignore since RFC 9989: remove it.')
  const rua = tags.get('rua')
  if (rua === undefined) return warn('The record has no "rua=": no reports say who sends as this domain.')
  if (!rua.split(',').some((uri) => /^mailto:[^@\s]+@[^@\s]+$/i.test(uri.trim())))
    return warn('The "rua=" of the record has no address such as "mailto:you@example.com": no reports come.')
  if (!tags.has('p')) return warn('The record has no "p=": receivers act as if it said "p=none".')
  const below = policy.name === domain ? undefined : tags.get('sp')
  return ok(`The policy is ${below ?? tags.get('p') ?? 'none'}.`)
}

/** Whether a domain that was authenticated counts for the From domain. `mode`: `s` strict, else relaxed. */
export const isAligned = (
  from: { readonly domain: string; readonly organisation: string },
  authenticated: { readonly domain: string; readonly organisation: string },
  mode: string | undefined,
): boolean => from.domain === authenticated.domain || (mode !== 's' && from.organisation === authenticated.organisation)
