/**
 * Addresses that are not public: of this machine, of private networks, and those that lead there. The
 * ranges are those of the IANA registries of special-purpose addresses.
 */
import { BlockList, isIP } from 'node:net'

const newList = (ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), isIP(network) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

const isIn = (list: BlockList, address: string): boolean => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

const four = newList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  '168.63.129.16/32', // Azure's own services
])

/**
 * All that is not in 2000::/3, the range of public addresses, and the special ones in it. Apart, because ::/3
 * has every IPv4 address in its form of IPv6.
 */
const six = newList([...['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']])

/** Whether the address is not publicly routable; true for text that is no address. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return true
  return isIn(family === 4 ? four : six, address)
}

/** Loopback, link-local, multicast and reserved addresses. */
const unreachable = newList([
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '::/127', 'fe80::/10', 'ff00::/8'],
])
const internal = newList(['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'])

/** Whether no other machine can reach a server at this address. */
export const isUnreachable = (address: string): boolean => isIn(unreachable, address)

/** Whether only machines in the same private network can. */
export const isInternal = (address: string): boolean => isIn(internal, address)
