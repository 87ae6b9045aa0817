/**
 * Addresses that are not public: of this machine, of private networks, and those that lead there. The
 * ranges are those of the IANA registries of special-purpose addresses.
 */
import { BlockList, isIP } from 'node:net'

const newList = (family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

const four = newList('ipv4', [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  '168.63.129.16/32', // Azure's own services
])

/** All that is not in 2000::/3, the range of public addresses, and the special ones in it. */
const six = newList('ipv6', [
  ...['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
])

/** Whether the address is not publicly routable; true for text that is no address. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return true
  return family === 4 ? four.check(address, 'ipv4') : six.check(address, 'ipv6')
}
