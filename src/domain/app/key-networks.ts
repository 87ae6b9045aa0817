/** The networks (CIDR, RFC 4632) from which a delivery key may be used. */
import ipaddr from 'ipaddr.js'
import { readAddress } from '../client-network.ts'
import { type Parsed, parsed, refuser } from '../parsed.ts'

/** Longer than any network. */
const networkMax = 50

/** A network in one spelling, such as `192.0.2.0/24`; an address is a network of one. */
export function parseNetwork(text: string): Parsed<string> {
  const refuse = refuser('networks')
  const [host = '', bits, ...rest] = text.length > networkMax ? [] : text.split('/')
  const hasMore = /[[%]|\.[^:]*:/.test(host) // brackets, a zone, or a port
  const address = hasMore ? null : readAddress(host)
  const bitsMax = address?.kind() === 'ipv4' ? 32 : 128
  const size = bits === undefined ? bitsMax : /^(0|[1-9]\d{0,2})$/.test(bits) ? Number(bits) : Number.NaN
  if (address === null || rest.length > 0 || !(size <= bitsMax))
    return refuse(
      'malformed_network',
      'This is not a network: write one as 192.0.2.0/24 or 2001:db8::/32, or an address.',
    )
  const kind = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  const first = kind.networkAddressFromCIDR(`${address}/${size}`).toString()
  if (first !== address.toString())
    return refuse(
      'host_bits',
      `This address is inside a network of /${size}: write ${first}/${size}, or the address alone.`,
    )
  return parsed(size === bitsMax ? first : `${first}/${size}`)
}

const readNetwork = (network: string) =>
  ipaddr.parseCIDR(network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`)

/** @param networks as `parseNetwork` writes them */
export function isInNetworks(text: string, networks: readonly string[]): boolean {
  const address = readAddress(text)
  return networks.some((network) => {
    const [first, size] = readNetwork(network)
    return address !== null && address.kind() === first.kind() && address.match(first, size)
  })
}

type Networks = readonly string[] | null

/** The networks that both lists allow; null allows all. */
export function sharedNetworks(one: Networks, other: Networks): Networks {
  if (one === null || other === null) return one ?? other
  const inside = (inner: readonly string[], outer: readonly string[]) =>
    inner.filter((network) => {
      const [first, size] = readNetwork(network)
      return outer.some((around) => readNetwork(around)[1] <= size && isInNetworks(first.toString(), [around]))
    })
  return [...new Set([...inside(one, other), ...inside(other, one)])]
}
