/** The network by which a client is counted: somebody with one IPv6 address has a network of them. */

/** Without brackets, port and zone, and an IPv4 address without the prefix of an IPv6 socket. */
export function bareAddress(text: string): string {
  const host = /^\[([^\]]*)\]/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, '$1')
  const [bare = ''] = host.split('%')
  const mapped = bare.replace(/^::ffff:/i, '')
  return mapped.includes(':') ? bare : mapped
}

/** An IPv4 address, or the IPv6 network of 64 bits, of an address without brackets, port and zone. */
export const toClientNetwork = (address: string): string =>
  address.includes(':') ? toNetwork(address) : address

/** The first four groups of an IPv6 address. */
function toNetwork(address: string): string {
  const [head = '', tail = ''] = address.split('::')
  const splitGroups = (part: string) => part.split(':').filter((group) => group !== '')
  const missing = 8 - splitGroups(head).length - splitGroups(tail).length
  const zeros = Array.from({ length: Math.max(0, missing) }, () => '0')
  const groups = [...splitGroups(head), ...zeros, ...splitGroups(tail)].slice(0, 4)
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}
