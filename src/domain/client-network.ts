/**
 * The networks by which a client is counted. One person may have many addresses: a home or a server has an
 * IPv6 network of 64 bits, a provider's customer one of 56 or 48, and a company may rent a larger one. So
 * each client counts in several networks, and each has a share of what there is for all.
 */

/** 4 or 16 bytes. An IPv4 address on an IPv6 socket (`::ffff:192.0.2.7`) has 4. */
type Address = readonly number[]

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
  const read = readAddress(text)
  if (read === null) return unknown
  const address = findEmbedded(read) ?? read
  const ladder = address.length === 4 ? sizes.four : sizes.six
  return ladder.map(([bits, share]) => ({ name: `${address.slice(0, bits / 8).join('.')}/${bits}`, share }))
}

/** An address in one spelling; null for other text. It may have brackets, a port, or a zone. */
export const toClientAddress = (text: string): string | null => readAddress(text)?.join('.') ?? null

type Network = readonly [start: Address, bits: number]

const privateNetworks: { readonly four: readonly Network[]; readonly six: readonly Network[] } = {
  four: [
    [[127], 8],
    [[10], 8],
    [[172, 16], 12],
    [[192, 168], 16],
    [[169, 254], 16],
    [[100, 64], 10], // of carriers; container networks use it too
  ],
  six: [
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 128],
    [[0xfc], 7],
    [[0xfe, 0x80], 10],
  ],
}

/**
 * Whether an address is of this machine or a private network. A reverse proxy, which carries all clients in
 * its connections, has such an address; a stranger on the Internet has none. An IPv6 address that contains a
 * private IPv4 address (6to4, NAT64, Teredo) may come from the Internet, and is not private.
 */
export function isPrivateNetwork(text: string): boolean {
  const address = readAddress(text)
  if (address === null) return false
  const networks = address.length === 4 ? privateNetworks.four : privateNetworks.six
  return networks.some((network) => isIn(address, network))
}

const isIn = (address: Address, [start, bits]: Network): boolean =>
  start.every((byte, at) => {
    const mask = 0xff & (0xff00 >> Math.min(8, bits - 8 * at))
    return ((address[at] ?? 0) & mask) === byte
  })

const startsWith = (address: Address, start: Address): boolean => isIn(address, [start, 8 * start.length])

/**
 * The IPv4 address that stands behind an IPv6 address. Its owner has 2^80 addresses of 6to4 (RFC 3056) and
 * many of Teredo (RFC 4380); and behind a translator (RFC 6052, RFC 8215) all of IPv4 would be one network.
 */
function findEmbedded(address: Address): Address | null {
  if (startsWith(address, [0x20, 0x02])) return address.slice(2, 6)
  if (startsWith(address, [0x20, 0x01, 0, 0])) return address.slice(12).map((byte) => 0xff - byte)
  const isTranslated = [
    [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0x64, 0xff, 0x9b, 0, 1],
  ].some((start) => startsWith(address, start))
  return isTranslated ? address.slice(12) : null
}

/** Longer than any address with brackets, zone and port. */
const textMax = 80

function readAddress(text: string): Address | null {
  if (text.length > textMax) return null
  const host = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, '$1')
  const [bare = ''] = host.split('%')
  if (!bare.includes(':')) return readFour(bare)
  const address = readSix(bare)
  const isMapped = address !== null && startsWith(address, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
  return isMapped ? address.slice(12) : address
}

function readFour(text: string): Address | null {
  const parts = text.split('.')
  const isAddress = parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)
  return isAddress ? parts.map(Number) : null
}

/** The last groups may be written as an IPv4 address. */
function readSix(text: string): Address | null {
  const lastAt = text.lastIndexOf(':') + 1
  const four = readFour(text.slice(lastAt))
  const halves = (four === null ? text : `${text.slice(0, lastAt)}0:0`).split('::').map(readGroups)
  const [head, tail] = halves
  if (halves.length > 2 || head == null || tail === null) return null
  const missing = 16 - head.length - (tail?.length ?? 0)
  if (tail === undefined ? missing !== 0 : missing < 2) return null
  const bytes = [...head, ...Array.from({ length: missing }, () => 0), ...(tail ?? [])]
  return four === null ? bytes : [...bytes.slice(0, 12), ...four]
}

/** The bytes of groups of four hexadecimal digits. */
function readGroups(text: string): Address | null {
  const groups = text === '' ? [] : text.split(':')
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return null
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}
