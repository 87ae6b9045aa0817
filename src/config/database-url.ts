/**
 * The form of `POSTERN_DATABASE_URL`:
 *
 *   sqlite:PATH
 *   postgres://user:password@host[:port][,host2[:port2]…]/database[?option=value&…]
 *
 * Several hosts form one cluster, whose writable server is used. TLS with a verified certificate is
 * the default for every host except loopback and socket folders.
 */
import { bareHost, isLoopback } from '../domain/client-network.ts'
import type { DatabaseAddress, DatabaseHost, PostgresAddress } from '../store/database-address.ts'
import { decodePercent, urlEscapes } from './reader.ts'

const options = ['host', 'schema', 'sslmode', 'sslrootcert', 'target_session_attrs']
const isLocal = (host: string): boolean => isLoopback(host) || host.startsWith('/')

/** The address, or what is wrong with it. The fault never repeats the text, which may hold a password. */
export function parseDatabaseUrl(text: string): DatabaseAddress | { readonly fault: string } {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(text)?.[1]
  if (path !== undefined) return { engine: 'sqlite', path }
  const match = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?]*)\/([^/?]+)(?:\?(.*))?$/.exec(text)
  if (match === null)
    return {
      fault: `write sqlite:/var/lib/postern/postern.db or postgres://user:password@host/database; ${urlEscapes}`,
    }
  const [, credentials = '', authority = '', database = '', search = ''] = match
  const query = new URLSearchParams(search)
  if ([...query.keys()].some((name) => !options.includes(name)))
    return { fault: `unknown option (${options.join(', ')} are known)` }
  const [user = '', password = ''] = splitOnce(credentials, ':').map(decodePercent)
  if (user === '') return { fault: 'name the user: postgres://user:password@host/database' }
  const hosts = parseHosts(authority === '' ? (query.get('host') ?? '') : authority)
  if (hosts === null)
    return {
      fault: `name a host, or several with commas: host1:5432,host2:5432; ${urlEscapes}`,
    }
  if (!['read-write', 'primary'].includes(query.get('target_session_attrs') ?? 'read-write'))
    return { fault: 'target_session_attrs: Postern always uses a writable server; leave it out' }
  const schema = query.get('schema') ?? 'postern'
  if (!/^[a-z_][a-z0-9_]{0,54}$/.test(schema))
    return { fault: 'schema: 1 to 55 of a-z, 0-9 and _, not beginning with a digit' }
  const tls = parseTls(query, hosts)
  if (tls !== null && 'fault' in tls) return tls
  return { engine: 'postgres', hosts, user, password, database: decodePercent(database), schema, tls }
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function parseHosts(authority: string): DatabaseHost[] | null {
  const hosts = authority.split(',').map((entry) => {
    if (entry.startsWith('/')) return { host: entry, port: 5432 }
    const match = /^(\[[0-9a-f:]+\]|[^:\s[\]@]+)(?::(\d{1,5}))?$/i.exec(entry)
    return { host: bareHost(match?.[1] ?? ''), port: Number(match?.[2] ?? 5432) }
  })
  return hosts.every(({ host, port }) => host !== '' && port > 0 && port < 65_536) ? hosts : null
}

function parseTls(query: URLSearchParams, hosts: readonly DatabaseHost[]): PostgresAddress['tls'] | { fault: string } {
  const ca = query.get('sslrootcert')
  const mode =
    query.get('sslmode') ?? (ca === null && hosts.every(({ host }) => isLocal(host)) ? 'disable' : 'verify-full')
  if (mode === 'disable') return null
  // An unverified certificate proves nothing, so "require" means "verify-full".
  if (mode === 'verify-full' || mode === 'require') return { ca }
  return { fault: 'sslmode is verify-full (the default; "require" means the same) or disable' }
}
