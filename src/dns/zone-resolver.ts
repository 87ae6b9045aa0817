/**
 * Looks records up at the name servers of their zone, so that a record which was published a minute ago is
 * seen, and not a cached absence; and with the machine's resolver where those do not answer. One resolver
 * serves one check: its queries and its time are bounded, whatever the servers do.
 */
import { Resolver } from 'node:dns/promises'
import { isIPv4 } from 'node:net'
import type { Answer, RecordType } from '../domain/dns/lookup.ts'
import { isPrivateAddress } from './private-address.ts'

export type ZoneResolverOptions = {
  /** Resolvers to ask for everything, as `address:port`; null: the machine's, and each zone's servers. */
  readonly servers: readonly string[] | null
  /** The resolvers in place of the machine's. */
  readonly general?: readonly string[]
  readonly withinMs?: number
  /** How long a query waits for its answer. */
  readonly timeoutMs?: number
  /** Whether a name server at this address is asked, and at which port. */
  readonly mayAsk?: (address: string) => boolean
  readonly zonePort?: number
}

/** Ten SPF records, ten keys, and the mail servers of two domains find room, and records at wrong names. */
const queriesMax = 100
/** A zone takes four queries to find: after these, ten includes of ten zones would find no place. */
const zoneQueriesMax = 30
const usualWithinMs = 15_000
const usualTimeoutMs = 3000
/** Large companies have dozens of TXT records at their domain. */
const recordsMax = 200
const recordMax = 4096
const serversMax = 2
const generalMax = 3
const aliasesMax = 3

/** Only public addresses are asked: a zone could name a server in the operator's own network. */
const isOutside = (address: string): boolean => isIPv4(address) && !isPrivateAddress(address)

export class ZoneResolver {
  readonly #options: ZoneResolverOptions
  readonly #deadlineMs: number
  readonly #general: readonly Resolver[]
  readonly #zones = new Map<string, Promise<readonly Resolver[]>>()
  readonly #answers = new Map<string, Promise<Answer>>()
  #queries = 0

  constructor(options: ZoneResolverOptions) {
    this.#options = options
    this.#deadlineMs = performance.now() + (options.withinMs ?? usualWithinMs)
    const servers = options.servers ?? options.general ?? new Resolver().getServers()
    // A query or its answer may be lost.
    const asked = servers.length === 1 ? [...servers, ...servers] : servers.slice(0, generalMax)
    this.#general = asked.map((server) => this.#newResolver(server))
  }

  /** Never rejects. The same question is asked once. */
  readonly lookup = (name: string, type: RecordType): Promise<Answer> => {
    const question = `${type} ${name.toLowerCase()}`
    const asked = this.#answers.get(question) ?? this.#find(name, type, aliasesMax)
    this.#answers.set(question, asked)
    return asked
  }

  async #find(name: string, type: RecordType, aliases: number): Promise<Answer> {
    const asksZone = this.#options.servers === null && this.#queries < zoneQueriesMax
    for (const resolver of asksZone ? await this.#findZone(name) : []) {
      const answer = await this.#ask(resolver, (at) => resolve(at, name, type))
      if (answer.kind === 'found') return answer
      if (answer.kind === 'unknown') continue
      // A server of the zone does not follow an alias out of it.
      const alias = await this.#ask(resolver, (at) => at.resolveCname(name))
      const [target] = alias.kind === 'found' && type !== 'CNAME' ? alias.records : []
      if (target === undefined || aliases === 0) return answer
      return this.#find(target, type, aliases - 1)
    }
    return this.#askGeneral((at) => resolve(at, name, type))
  }

  /** The servers of the zone that a name is in, found by the machine's resolver. */
  #findZone(name: string): Promise<readonly Resolver[]> {
    const known = this.#zones.get(name) ?? this.#readZone(name)
    this.#zones.set(name, known)
    return known
  }

  async #readZone(name: string): Promise<readonly Resolver[]> {
    if (name.split('.').length < 2) return []
    const servers = await this.#askGeneral((at) => at.resolveNs(name))
    if (servers.kind !== 'found') {
      const parent = name.slice(name.indexOf('.') + 1)
      return servers.kind === 'absent' ? this.#findZone(parent) : []
    }
    const found = await Promise.all(
      servers.records.slice(0, serversMax).map((server) => this.#askGeneral((at) => at.resolve4(server))),
    )
    const { mayAsk = isOutside, zonePort = 53 } = this.#options
    const addresses = found.flatMap((answer) => (answer.kind === 'found' ? answer.records.slice(0, 1) : []))
    return addresses.filter(mayAsk).map((address) => this.#newResolver(`${address}:${zonePort}`))
  }

  /** The answer of the first that gives one. */
  async #askGeneral(query: (at: Resolver) => Promise<readonly string[]>): Promise<Answer> {
    let answer: Answer = { kind: 'unknown', reason: 'no name server is known' }
    for (const resolver of this.#general) {
      answer = await this.#ask(resolver, query)
      if (answer.kind !== 'unknown') break
    }
    return answer
  }

  async #ask(resolver: Resolver, query: (at: Resolver) => Promise<readonly string[]>): Promise<Answer> {
    const leftMs = this.#deadlineMs - performance.now()
    // A timer may fire a millisecond early.
    if (leftMs < 1) return { kind: 'unknown', reason: 'no time is left' }
    if (this.#queries >= queriesMax) return { kind: 'unknown', reason: 'too many queries' }
    this.#queries += 1
    const timer = setTimeout(() => resolver.cancel(), Math.ceil(leftMs))
    try {
      const records = await query(resolver)
      // An answer with nothing but an alias is empty.
      if (records.length === 0) return { kind: 'absent' }
      const isBounded = records.length <= recordsMax && records.every(({ length }) => length <= recordMax)
      return isBounded ? { kind: 'found', records } : { kind: 'unknown', reason: 'the answer is too large' }
    } catch (error) {
      const { code = 'EFAULT' } = error as { readonly code?: string }
      return code === 'ENOTFOUND' || code === 'ENODATA'
        ? { kind: 'absent' }
        : { kind: 'unknown', reason: reasons[code] ?? code }
    } finally {
      clearTimeout(timer)
    }
  }

  /** For one server: a query to it is one packet, and one exchange by TCP if the answer is truncated. */
  #newResolver(server: string): Resolver {
    const timeout = this.#options.timeoutMs ?? usualTimeoutMs
    const resolver = new Resolver({ timeout, maxTimeout: timeout, tries: 1 })
    resolver.setServers([server])
    return resolver
  }
}

const reasons: Readonly<Record<string, string>> = {
  ...{ ETIMEOUT: 'no answer', ECANCELLED: 'no time is left', ESERVFAIL: 'the server failed' },
  ...{ EREFUSED: 'the server refused', ECONNREFUSED: 'no name server answers', EBADNAME: 'no valid name' },
}

async function resolve(at: Resolver, name: string, type: RecordType): Promise<readonly string[]> {
  switch (type) {
    case 'TXT':
      // Node decodes TXT strings as Latin-1.
      return (await at.resolveTxt(name)).map((strings) => Buffer.from(strings.join(''), 'latin1').toString())
    case 'MX':
      return (await at.resolveMx(name)).map(({ exchange, priority }) => `${priority} ${exchange}`)
    case 'A':
      return at.resolve4(name)
    case 'AAAA':
      return at.resolve6(name)
    case 'CNAME':
      return at.resolveCname(name)
    default:
      return type satisfies never
  }
}
