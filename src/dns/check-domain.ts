/** Checks in DNS that mail from a domain arrives: signatures, SPF, DMARC, where replies and bounces go. */
import { toPrintableLine } from '../domain/controls.ts'
import type { SigningKey } from '../domain/delivery/signing-key.ts'
import { dkimName, formatDkimRecord, judgeDkimRecord } from '../domain/dns/dkim-record.ts'
import { type DmarcWalk, findPolicy, isAligned, judgeDmarc, walkDmarc } from '../domain/dns/dmarc.ts'
import { type Answer, type Lookup, type RecordType, type Result, unknown, type Verdict } from '../domain/dns/lookup.ts'
import { judgeSpf, toSpfVerdict } from '../domain/dns/spf.ts'
import { judgeMx } from './mx.ts'

type CheckedKey = Pick<SigningKey, 'selector' | 'algorithm' | 'publicKey' | 'state'>

export type DomainSubject = {
  /** The domain of the From address. */
  readonly domain: string
  /** The domain of the envelope's sender; null where the relay puts its own. */
  readonly envelopeDomain: string | null
  /** The domain to which bounces come; null without a bounce address. */
  readonly bounceDomain: string | null
  readonly keys: readonly CheckedKey[]
  /** The SPF include of the relay's provider; null if none is known. */
  readonly include: string | null
}

export const domainChecks = ['dkim', 'spf', 'dmarc', 'alignment', 'mx', 'bounce_domain', 'link_domain'] as const
type DomainCheck = (typeof domainChecks)[number]

/** A TXT record. */
type Publish = { readonly name: string; readonly value: string }

export type DomainLine = Verdict & {
  readonly check: DomainCheck
  /** The name that was asked for. */
  readonly name: string
  /** The text that is in DNS, shortened; null for none. */
  readonly found: string | null
  /** The record to publish; null if none is missing. */
  readonly publish: Publish | null
}

export async function checkDomain(subject: DomainSubject, lookup: Lookup): Promise<readonly DomainLine[]> {
  const { bounceDomain, domain, envelopeDomain } = subject
  const [keys, walk, spf, mx, bounce] = await Promise.all([
    Promise.all(subject.keys.map((key) => checkKey(domain, key, lookup))),
    walkDmarc(domain, lookup),
    envelopeDomain === null ? null : checkSpf(envelopeDomain, subject.include, lookup),
    checkMx('mx', domain, lookup),
    bounceDomain === null ? null : checkMx('bounce_domain', bounceDomain, lookup),
  ])
  const alignment = await checkAlignment(subject, { walk, keys, spf: spf?.result ?? null, lookup })
  const lines = [
    ...keys,
    ...(spf === null ? [] : [spf]),
    describeDmarc(domain, walk),
    alignment,
    mx,
    ...(bounce === null ? [] : [bounce]),
  ]
  return Promise.all(lines.map((line) => findMisplaced(line, domain, lookup)))
}

/** The line of one key, by which `domain.activate_key` also decides. */
export async function checkKey(domain: string, key: CheckedKey, lookup: Lookup): Promise<DomainLine> {
  const name = dkimName(key.selector, domain)
  const answer = await lookup(name, 'TXT')
  const { message, result } = judgeDkimRecord(answer, key)
  const line = (judged: Verdict, isMissing: boolean): DomainLine => ({
    ...{ check: 'dkim', name, found: show(answer), ...judged },
    publish: isMissing ? { name, value: formatDkimRecord(key.algorithm, key.publicKey) } : null,
  })
  const isMissing = result === 'fail'
  switch (key.state) {
    case 'active':
      return line({ result, message }, isMissing)
    case 'pending':
      return result === 'ok' || (result === 'fail' && answer.kind === 'absent')
        ? line({ result: 'warn', message: isMissing ? message : `${message} Activate the key.` }, isMissing)
        : line({ result, message }, isMissing)
    case 'retired':
      return line({ result: 'ok', message: 'Another key signs: remove the record 7 days after that.' }, false)
    default:
      return key.state satisfies never
  }
}

async function checkSpf(domain: string, include: string | null, lookup: Lookup): Promise<DomainLine> {
  const judgement = await judgeSpf(domain, lookup)
  // Only the provider of an unknown relay knows the record that authorizes it.
  const isSuggested = judgement.result === 'none' && judgement.record === null && include !== null
  return {
    ...{ check: 'spf', name: domain, found: shorten(judgement.record), ...toSpfVerdict(judgement, include) },
    publish: isSuggested ? { name: domain, value: `v=spf1 include:${include} ~all` } : null,
  }
}

function describeDmarc(domain: string, walk: DmarcWalk): DomainLine {
  const policy = findPolicy(walk, domain)
  const verdict = judgeDmarc(walk, domain)
  const name = `_dmarc.${policy?.name ?? domain}`
  const isMissing = policy === null && verdict.result === 'warn'
  return {
    ...{ check: 'dmarc', name, found: shorten(policy?.text ?? null), ...verdict },
    publish: isMissing ? { name, value: `v=DMARC1; p=none; rua=mailto:dmarc@${domain}` } : null,
  }
}

type Findings = {
  readonly walk: DmarcWalk
  readonly keys: readonly DomainLine[]
  /** Null where the relay puts its own sender on the envelope. */
  readonly spf: Result | null
  readonly lookup: Lookup
}

/** A signature of ours is always by the From domain itself. */
async function checkAlignment(
  { domain, envelopeDomain, keys }: DomainSubject,
  { walk, keys: lines, spf, lookup }: Findings,
): Promise<DomainLine> {
  const line = (result: Result, message: string): DomainLine => ({
    ...{ check: 'alignment', name: domain, found: null, publish: null, result, message },
  })
  const active = lines.filter((_, n) => keys[n]?.state === 'active').map(({ result }) => result)
  if (active.some((result) => result === 'ok' || result === 'warn'))
    return line('ok', 'The signature is by the From domain.')
  if (active.includes('unknown')) return line('unknown', 'It depends on the record of the signing key.')
  if (spf === 'unknown') return line('unknown', 'It depends on the SPF record.')
  if (spf === 'fail')
    return line(
      'fail',
      'Neither a signature nor SPF authenticates the From domain: add a signing key, or fix the SPF record.',
    )
  if (envelopeDomain === null)
    return line('warn', 'DMARC holds only if the relay signs as this domain: its provider says how.')
  const policy = findPolicy(walk, domain)
  const mode = policy?.kind === 'record' ? policy.tags.get('aspf') : undefined
  const other = envelopeDomain === domain ? walk : await walkDmarc(envelopeDomain, lookup)
  const reason = walk.unknown ?? other.unknown
  if (envelopeDomain !== domain && reason !== null) return { ...line('unknown', ''), ...unknown(reason) }
  const from = { domain, organisation: walk.organisation }
  // Without a DMARC record, as if the one to publish were there.
  const wouldAlign = policy === null && envelopeDomain.endsWith(`.${domain}`)
  return wouldAlign || isAligned(from, { domain: envelopeDomain, organisation: other.organisation }, mode)
    ? line('warn', 'Only SPF authenticates the From domain, and forwarding breaks SPF: add a signing key.')
    : line(
        'fail',
        `Neither a signature nor SPF authenticates the From domain: add a signing key, or use a bounce address in ${domain}.`,
      )
}

const mxWords = {
  mx: {
    ok: 'The domain accepts mail.',
    fail: 'The domain accepts no mail, and some receivers refuse mail from it.',
  },
  bounce_domain: { ok: 'The bounce domain accepts mail.', fail: 'Bounces cannot be delivered.' },
} as const

async function checkMx(check: keyof typeof mxWords, domain: string, lookup: Lookup): Promise<DomainLine> {
  const { found, message, result } = await judgeMx(domain, lookup)
  const { ok, fail } = mxWords[check]
  const text = result === 'ok' ? ok : result === 'fail' ? `${fail} ${message}` : message
  return { check, name: domain, found: showAll(found), publish: null, result, message: text }
}

/** The record of a check, by which it is recognized at another name. */
const forms: Readonly<Record<DomainCheck, readonly [type: RecordType, form: RegExp] | null>> = {
  dkim: ['TXT', /\bp=[A-Za-z0-9+/]{40}/],
  spf: ['TXT', /^v=spf1/i],
  dmarc: ['TXT', /^v=DMARC1/i],
  alignment: null,
  mx: ['MX', /^/],
  bounce_domain: ['MX', /^/],
  link_domain: null,
}

/** The zones that a provider may have appended: the domain and its parents. */
const zonesMax = 3
/** Nobody has it: a wildcard answers for it as for any other name. */
const unused = '_postern-unused'

/**
 * Many DNS providers append the zone to the name that you enter, so a record meant for `_dmarc.acme.com` is
 * published at `_dmarc.acme.com.acme.com`.
 */
async function findMisplaced(line: DomainLine, domain: string, lookup: Lookup): Promise<DomainLine> {
  const form = forms[line.check]
  const isMissing = line.found === null && (line.publish !== null || line.result === 'fail')
  if (form === null || !isMissing) return line
  const [type, pattern] = form
  const labels = domain.split('.')
  const zones = labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'))
  for (const zone of zones.slice(0, zonesMax)) {
    const place = `${line.name}.${zone}`
    const records = await lookup(place, type)
    if (records.kind !== 'found' || !records.records.some((record) => pattern.test(record))) continue
    const wildcard = await lookup(`${unused}.${place}`, type)
    if (wildcard.kind !== 'absent') continue
    const advice = `There is one at ${place}: your provider adds ${zone} to names, so enter the name without it.`
    return { ...line, message: `${line.message} ${advice}` }
  }
  return line
}

const shownMax = 500

/** Records are public, and operators compare them with their own: only what a terminal obeys goes. */
const shorten = (text: string | null): string | null =>
  text === null ? null : toPrintableLine(text.slice(0, shownMax))

const showAll = (records: readonly string[] | null): string | null =>
  records === null ? null : shorten(records.join(' | '))

const show = (answer: Answer): string | null => showAll(answer.kind === 'found' ? answer.records : null)
