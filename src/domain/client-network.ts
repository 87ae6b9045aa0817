/**
 * The networks by which a client is counted. One person may have many addresses: a home or a server has an
 * IPv6 network of 64 bits, a provider's customer one of 56 or 48, and a company may rent a larger one. So
 * each client counts in several networks, and each has a share of what there is for all.
 */

import ipaddr from 'ipaddr.js'

export type ClientNetwork = {
  /** As `192.0.2.0/24`, with the bytes in decimal also for IPv6. */
  readonly name: string
  /** The part of the limit of all that this network may use. */
  readonly share: number
}

type Size = readonly [bits: number, share: number]

/**
 * The first size is one client. Shares grow more slowly than networks do, and none is more than a quarter, so
 * that the owner of one network leaves most of the limit to others.
 */
const sizes: { readonly four: readonly Size[]; readonly six: readonly Size[] } = {
  four: [
    [32, 1 / 8],
    [24, 1 / 6],
    [16, 1 / 4],
  ],
  six: [
    [64, 1 / 8],
    [56, 1 / 7],
    [48, 1 / 6],
    [32, 1 / 4],
  ],
}

/** Clients whose address is unknown are one client. */
const unknown: readonly ClientNetwork[] = [{ name: 'unknown', share: 1 / 8 }]

/** The networks of an address, from one client to the largest; each contains the one before it. */
export function listNetworks(text: string): readonly ClientNetwork[] {
  const address = readAddress(text)
  if (address === null) return unknown
  const bytes = readEmbedded(address) ?? address.toByteArray()
  const ladder = bytes.length === 4 ? sizes.four : sizes.six
  return ladder.map(([bits, share]) => ({ name: `${bytes.slice(0, bits / 8).join('.')}/${bits}`, share }))
}

/**
 * The networks of an address, and last all clients together. A reverse proxy carries all clients, so it
 * counts only there.
 */
export const listShares = (address: string, isProxy: (address: string) => boolean): readonly ClientNetwork[] => [
  ...(isProxy(address) ? [] : listNetworks(address)),
  { name: 'all', share: 1 },
]

/** An address in one spelling; null for other text. It may have brackets, a port, or a zone. */
export const toClientAddress = (text: string): string | null => readAddress(text)?.toString() ?? null

const privateRanges = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal', 'carrierGradeNat'])

/**
 * Whether an address is of this machine or a private network. A reverse proxy has such an address; a stranger
 * on the Internet has none. Container networks use that of carriers, too. An IPv6 address that contains a
 * private IPv4 address (6to4, NAT64, Teredo) may come from the Internet, and is not private.
 */
export const isPrivateNetwork = (text: string): boolean => privateRanges.has(readAddress(text)?.range() ?? '')

/**
 * The IPv4 address inside an IPv6 address. Its owner has 2^80 addresses of 6to4 (RFC 3056) and many of Teredo
 * (RFC 4380); and behind a translator (RFC 6052, RFC 8215) all of IPv4 would be one network.
 */
function readEmbedded(address: ipaddr.IPv4 | ipaddr.IPv6): readonly number[] | null {
  const bytes = address.toByteArray()
  const range = address.range()
  if (range === '6to4') return bytes.slice(2, 6)
  if (range === 'teredo') return bytes.slice(12).map((byte) => 0xff - byte)
  return range === 'rfc6052' ? bytes.slice(12) : null
}

/** Longer than any address with brackets, zone and port. */
const textMax = 80

/** An IPv4 address on an IPv6 socket (`::ffff:192.0.2.7`) is read as IPv4. */
export function readAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (text.length > textMax) return null
  const host = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, '$1')
  const [bare = ''] = host.split('%')
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare)
  const url = `http://[${bare}]`
  if (!/^[\da-f:.]+$/i.test(bare) || !URL.canParse(url)) return null
  // In hexadecimal digits: `::192.0.2.7` is not `::ffff:192.0.2.7`, for which ipaddr.js takes it.
  return ipaddr.process(new URL(url).hostname.slice(1, -1))
}

/** The host of a URL, without the brackets of IPv6. */
export const bareHost = (host: string): string => host.replace(/^\[|\]$/g, '')

/** Whether a host of a URL, or an address, is this machine. */
export const isLoopback = (host: string): boolean => /^(localhost|127(?:\.\d+){3}|\[?::1\]?)$/.test(host)
