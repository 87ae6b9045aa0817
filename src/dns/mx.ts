/** Whether the servers that take a domain's mail can be reached (RFC 5321, section 5.1; RFC 7505). */
import { isIP } from 'node:net'
import { findAddresses, type Lookup, type Result, unknown, type Verdict } from '../domain/dns/lookup.ts'
import { isInternal, isUnreachable } from './private-address.ts'

/** Looked at in order of preference; each takes three queries. */
const serversMax = 5

export type MxJudgement = Verdict & {
  /** The MX records; null without one. */
  readonly found: readonly string[] | null
}

/** `message`: what is wrong, as a sentence; empty for nothing. */
export async function judgeMx(domain: string, lookup: Lookup): Promise<MxJudgement> {
  const answer = await lookup(domain, 'MX')
  if (answer.kind === 'unknown') return { ...unknown(answer.reason), found: null }
  if (answer.kind === 'absent') return { ...(await judgeServer(domain, lookup, { isFallback: true })), found: null }
  const found = answer.records
  const servers = found.map(readServer).toSorted((a, b) => a.preference - b.preference)
  if (servers.some(({ name }) => name === ''))
    return {
      result: 'fail',
      message: 'It publishes a null MX, which means that it accepts no mail (RFC 7505).',
      found,
    }
  const judged = await Promise.all(
    servers.slice(0, serversMax).map(({ name }) => judgeServer(name, lookup, { isFallback: false })),
  )
  const messages = [...new Set(judged.map(({ message }) => message))].filter(Boolean)
  const result = combine(judged.map((server) => server.result))
  const isCertain = result !== 'fail' || servers.length <= serversMax
  return { result: isCertain ? result : 'unknown', message: messages.join(' '), found }
}

/** One server that works is enough for the mail to arrive, after delays. */
function combine(results: readonly Result[]): Result {
  if (results.every((result) => result === 'ok')) return 'ok'
  if (results.some((result) => result === 'ok' || result === 'warn')) return 'warn'
  return results.includes('unknown') ? 'unknown' : 'fail'
}

function readServer(record: string): { readonly preference: number; readonly name: string } {
  const [preference = '', name = ''] = record.split(' ')
  return { preference: Number(preference), name: name.replace(/\.$/, '') }
}

/** @param options.isFallback whether it is the domain itself, which has no MX */
async function judgeServer(
  name: string,
  lookup: Lookup,
  { isFallback }: { readonly isFallback: boolean },
): Promise<Verdict> {
  if (isIP(name) !== 0)
    return { result: 'fail', message: `Its MX contains the address ${name}; an MX must contain a host name.` }
  if (!/^[A-Za-z0-9._-]+$/.test(name))
    return { result: 'fail', message: `Its MX contains ${JSON.stringify(name)}, which is no host name.` }
  const [answer, alias] = await Promise.all([findAddresses(name, lookup), isFallback ? null : lookup(name, 'CNAME')])
  if (answer.kind === 'unknown') return unknown(answer.reason)
  if (answer.kind === 'absent')
    return isFallback
      ? { result: 'fail', message: 'It has no MX and no address: add an MX.' }
      : { result: 'fail', message: `Its MX names ${name}, which has no address.` }
  const outside = answer.records.filter((address) => !isUnreachable(address))
  if (outside.length === 0)
    return {
      result: 'fail',
      message: `Its mail server ${name} resolves to ${answer.records[0]}, which other machines cannot reach.`,
    }
  if (outside.every((address) => isInternal(address)))
    return {
      result: 'warn',
      message: `Its mail server ${name} resolves to ${outside[0]}, which only machines in the same private network can reach.`,
    }
  if (alias?.kind === 'found')
    return {
      result: 'warn',
      message: `Its MX ${name} is a CNAME, which RFC 5321 does not allow: use the name that it points to.`,
    }
  return { result: 'ok', message: '' }
}
