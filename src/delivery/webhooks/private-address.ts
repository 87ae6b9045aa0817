/**
 * Addresses that are not public: of this machine, of private networks, and those that lead there. The
 * ranges are those of the IANA registries of special-purpose addresses.
 */
import { BlockList, isIP } from 'node:net'

const ranges = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

const list = new BlockList()
for (const range of ranges) {
  const [network = '', bits] = range.split('/')
  list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4')
}

/** Whether the address is not publicly routable; true for text that is no address. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  // An IPv6 address that carries one of IPv4 is checked as that one.
  return family === 0 || list.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
