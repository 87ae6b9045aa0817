/** Checks in DNS that mail from a domain arrives: signatures, SPF, DMARC, where replies and bounces go. */
import { toPrintableLine } from '../domain/controls.ts'
import type { SigningKey } from '../domain/delivery/signing-key.ts'
import { findDkimName, formatDkimRecord, judgeDkimRecord } from '../domain/dns/dkim-record.ts'
import { type DmarcWalk, findPolicy, isAligned, judgeDmarc, walkDmarc } from '../domain/dns/dmarc.ts'
import { type Answer, type Lookup, type Result, unknown, type Verdict } from '../domain/dns/lookup.ts'
import { judgeSpf, toSpfVerdict } from '../domain/dns/spf.ts'

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

export const domainChecks = ['dkim', 'spf', 'dmarc', 'alignment', 'mx', 'bounce_domain'] as const
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
    checkMx(domain, lookup),
    bounceDomain === null ? null : checkBounceDomain(bounceDomain, lookup),
  ])
  const alignment = await checkAlignment(subject, { walk, keys, lookup })
  return [
    ...keys,
    ...(spf === null ? [] : [spf]),
    describeDmarc(domain, walk),
    alignment,
    mx,
    ...(bounce === null ? [] : [bounce]),
  ]
}

/** The line of one key, by which `domain.activate_key` also decides. */
export async function checkKey(domain: string, key: CheckedKey, lookup: Lookup): Promise<DomainLine> {
  const name = findDkimName(key.selector, domain)
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
  const value = `v=spf1 ${include === null ? 'a mx' : `include:${include}`} ~all`
  return {
    ...{ check: 'spf', name: domain, found: shorten(judgement.record), ...toSpfVerdict(judgement, include) },
    publish: judgement.result === 'none' ? { name: domain, value } : null,
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
  readonly lookup: Lookup
}

/** A signature of ours is always by the From domain itself. */
async function checkAlignment(
  { domain, envelopeDomain, keys }: DomainSubject,
  { walk, keys: lines, lookup }: Findings,
): Promise<DomainLine> {
  const line = (result: Result, message: string): DomainLine => ({
    ...{ check: 'alignment', name: domain, found: null, publish: null, result, message },
  })
  const active = lines.filter((_, n) => keys[n]?.state === 'active').map(({ result }) => result)
  if (active.some((result) => result === 'ok' || result === 'warn'))
    return line('ok', 'The signature is by the From domain.')
  if (active.includes('unknown')) return line('unknown', 'It depends on the record of the signing key.')
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
    ? line('warn', 'Only SPF stands for the From domain, and a forward breaks it: sign the mail as well.')
    : line(
        'fail',
        `Neither a signature nor SPF stands for the From domain: add a signing key, or let the envelope be in ${domain}.`,
      )
}

async function checkMx(domain: string, lookup: Lookup): Promise<DomainLine> {
  const answer = await lookup(domain, 'MX')
  const line = (verdict: Verdict): DomainLine => ({
    ...{ check: 'mx', name: domain, found: show(answer), publish: null, ...verdict },
  })
  if (answer.kind === 'unknown') return line(unknown(answer.reason))
  if (answer.kind === 'found')
    return answer.records.some((record) => /^\d+ \.?$/.test(record))
      ? line({
          result: 'fail',
          message: 'The domain says that it takes no mail (null MX), so receivers refuse mail from it.',
        })
      : line({ result: 'ok', message: 'The domain takes mail.' })
  const address = await findAddress(domain, lookup)
  if (address.kind === 'unknown') return line(unknown(address.reason))
  return line(
    address.kind === 'found'
      ? { result: 'ok', message: 'The domain takes mail at its address.' }
      : {
          result: 'fail',
          message: 'The domain has no MX and no address, and some receivers refuse mail from it: add an MX.',
        },
  )
}

async function checkBounceDomain(domain: string, lookup: Lookup): Promise<DomainLine> {
  const { found, result } = await checkMx(domain, lookup)
  const message =
    result === 'ok'
      ? 'Bounces have a server to go to.'
      : result === 'fail'
        ? 'The domain of the bounce address has no server for mail: add an MX that leads to the bounce listener.'
        : 'DNS did not answer: check again.'
  return { check: 'bounce_domain', name: domain, found, result, message, publish: null }
}

async function findAddress(name: string, lookup: Lookup): Promise<Answer> {
  const answers = await Promise.all([lookup(name, 'A'), lookup(name, 'AAAA')])
  const find = (kind: Answer['kind']) => answers.find((answer) => answer.kind === kind)
  return find('found') ?? find('unknown') ?? { kind: 'absent' }
}

const shownMax = 500

/** Records are public, and operators compare them with their own: only what a terminal obeys goes. */
const shorten = (text: string | null): string | null =>
  text === null ? null : toPrintableLine(text.slice(0, shownMax))

const show = (answer: Answer): string | null =>
  answer.kind === 'found' ? shorten(answer.records.join(' | ')) : null
