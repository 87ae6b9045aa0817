/** `POSTERN_DNS_SERVERS`: the resolvers that the check of a domain asks. */
import { isIPv4, isIPv6 } from 'node:net'
import type { Reader } from './reader.ts'

const name = 'POSTERN_DNS_SERVERS'

/** Null: the machine's resolver, and the name servers of each zone. */
export function readDnsServers({ fault, text }: Reader): readonly string[] | null {
  const given = text(name)
  if (given === '') return null
  const servers = given.split(/[\s,]+/)
  if (!servers.every(isServer))
    fault(`${name} must be addresses of resolvers, such as 10.0.0.53 or 127.0.0.1:5353 or [2001:db8::53]:53`)
  return servers
}

function isServer(text: string): boolean {
  const [bracketed, inner = '', ownPort] = /^\[([^\]]*)\](?::(.*))?$/.exec(text) ?? []
  if (bracketed !== undefined) return isIPv6(inner) && (ownPort === undefined || isPort(ownPort))
  if (isIPv6(text)) return true
  const [address = '', port, ...more] = text.split(':')
  return isIPv4(address) && (port === undefined || isPort(port)) && more.length === 0
}

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65535
