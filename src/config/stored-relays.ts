/**
 * The URLs of relays that are stored, as transports. The admin of the service who wrote them may have no
 * access to the machine: so they name no file, and reach no private network unless that is allowed.
 */
import { isIP } from 'node:net'
import { isPrivateAddress } from '../dns/private-address.ts'
import { bareHost, isLoopback } from '../domain/client-network.ts'
import { relaysPerTransport } from '../domain/delivery/transport.ts'
import { findTokenService } from '../services/services.ts'
import { decodePercent, urlEscapes } from './reader.ts'
import { type ParsedRelay, parseRelayUrl } from './relay-url.ts'
import { type ParsedRelays, parseRelayUrls } from './relays.ts'

const storedUrlMax = 8192

type Options = {
  readonly allowsPrivate: boolean
  /** The resolvers that look up the names; null for those of the machine. */
  readonly dnsServers: readonly string[] | null
}

export function parseStoredRelays(urls: readonly string[], options: Options): ParsedRelays {
  if (urls.length === 0 || urls.length > relaysPerTransport)
    return {
      relays: [],
      faults: [
        {
          index: null,
          text:
            urls.length === 0
              ? 'give at least one relay'
              : `${urls.length} relays; a transport has at most ${relaysPerTransport}`,
        },
      ],
    }
  return parseRelayUrls(urls, (entry) => parseStored(entry, options))
}

function parseStored(entry: string, { allowsPrivate, dnsServers }: Options): ReturnType<typeof parseRelayUrl> {
  const refuse = (fault: string) => ({ relay: null, faults: [fault] })
  if (entry.length > storedUrlMax) return refuse(`its URL has more than ${storedUrlMax} characters`)
  // They are stored with spaces between them.
  if (/\s/.test(entry)) return refuse(`there is a space in its URL; ${urlEscapes}`)
  // Before it is parsed, which reads the files.
  if (namesFile(entry))
    return refuse(
      'the URL of a stored relay names no files of the server: write a secret itself, escaped, and leave out ca',
    )
  const { faults, relay } = parseRelayUrl(entry)
  if (relay === null) return { relay, faults }
  if (allowsPrivate) return { relay, faults }
  const fault = findPrivate(entry, relay)
  return fault === null ? { relay: withoutPrivate(relay, dnsServers), faults } : refuse(fault)
}

/** `file:` may be written with escapes, so all values are decoded as the parser does. */
function namesFile(entry: string): boolean {
  const url = URL.parse(entry)
  if (url === null) return false
  const values = url.search
    .slice(1)
    .split('&')
    .map((pair) => pair.slice(pair.indexOf('=') + 1))
  return (
    [url.username, url.password, ...values].some((value) => decodePercent(value).startsWith('file:')) ||
    /[?&]ca=/.test(url.search)
  )
}

const privateAllowed = 'unless POSTERN_TRANSPORTS_PRIVATE=yes is set where Postern runs'

function findPrivate(entry: string, { address }: ParsedRelay): string | null {
  const options = new URLSearchParams(URL.parse(entry)?.search)
  const tokens = options.get('oauth')
  if (options.has('endpoint')) return `endpoint is not for transports, ${privateAllowed}`
  if (tokens !== null && findTokenService(tokens) === null)
    return `oauth is for the services that Postern knows, ${privateAllowed}`
  if (address.protocol !== 'smtp') return null
  if (address.tls === 'none') return `a relay without TLS is not for transports, ${privateAllowed}`
  const host = bareHost(address.host)
  const isPrivate = isIP(host) === 0 ? isLoopback(host) || !host.includes('.') : isPrivateAddress(host)
  return isPrivate ? `its address is not on the public Internet; that is refused, ${privateAllowed}` : null
}

/** A name may get another address later, so each connection looks. */
const withoutPrivate = (relay: ParsedRelay, dnsServers: Options['dnsServers']): ParsedRelay =>
  relay.address.protocol === 'smtp' ? { ...relay, address: { ...relay.address, publicOnly: { dnsServers } } } : relay
