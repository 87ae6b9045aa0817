/** Whether the servers that take a domain's mail can be reached (RFC 5321, section 5.1; RFC 7505). */
import { BlockList, isIP } from 'node:net'
import { type Answer, type Lookup, type Result, unknown, type Verdict } from '../domain/dns/lookup.ts'

/** Looked at in order of preference. */
const serversMax = 5

export type MxJudgement = Verdict & {
  /** The MX records; null without one. */
  readonly found: readonly string[] | null
}

const newList = (...ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4')
  }
  return list
}

/** Addresses at which nobody else finds a server: of the machine that asks, of a link, of groups. */
const unreachable = newList(
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3'],
  ...['::/127', 'fe80::/10', 'ff00::/8'],
)
const internal = newList('10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7')

const isIn = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** `message`: what is wrong, as a sentence; empty for nothing. */
export async function judgeMx(domain: string, lookup: Lookup): Promise<MxJudgement> {
  const answer = await lookup(domain, 'MX')
  if (answer.kind === 'unknown') return { ...unknown(answer.reason), found: null }
  if (answer.kind === 'absent') return { ...(await judgeServer(domain, lookup, true)), found: null }
  const found = answer.records
  const servers = found.map(readServer).toSorted((a, b) => a.preference - b.preference)
  if (servers.some(({ name }) => name === ''))
    return { result: 'fail', message: 'It says that it takes no mail (null MX).', found }
  const judged = await Promise.all(
    servers.slice(0, serversMax).map(({ name }) => judgeServer(name, lookup, false)),
  )
  const messages = [...new Set(judged.map(({ message }) => message))].filter(Boolean)
  return { result: combine(judged.map(({ result }) => result)), message: messages.join(' '), found }
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

/** @param isDomain whether the mail goes to the domain's own address, for want of an MX */
async function judgeServer(name: string, lookup: Lookup, isDomain: boolean): Promise<Verdict> {
  if (isIP(name) !== 0)
    return { result: 'fail', message: `Its MX has the address ${name}: an MX names a server.` }
  const [answer, alias] = await Promise.all([
    findAddresses(name, lookup),
    isDomain ? null : lookup(name, 'CNAME'),
  ])
  if (answer.kind === 'unknown') return unknown(answer.reason)
  if (answer.kind === 'absent')
    return isDomain
      ? { result: 'fail', message: 'It has no MX and no address: add an MX.' }
      : { result: 'fail', message: `Its MX names ${name}, which has no address.` }
  const outside = answer.records.filter((address) => !isIn(unreachable, address))
  if (outside.length === 0)
    return {
      result: 'fail',
      message: `Its mail goes to ${name} at ${answer.records[0]}, where no other machine can reach it.`,
    }
  if (outside.every((address) => isIn(internal, address)))
    return {
      result: 'warn',
      message: `Its mail goes to ${name} at ${outside[0]}, which only machines of the same private network can reach.`,
    }
  if (alias?.kind === 'found')
    return { result: 'warn', message: `Its MX names ${name}, which is an alias (CNAME); name its target.` }
  return { result: 'ok', message: '' }
}

/** IPv6 is asked for only where there is no IPv4. */
async function findAddresses(name: string, lookup: Lookup): Promise<Answer> {
  const four = await lookup(name, 'A')
  if (four.kind === 'found') return four
  const six = await lookup(name, 'AAAA')
  return six.kind === 'absent' ? four : six
}
