/** `POSTERN_SMTP_URL` and the bounds of the relays. */
import { formatHostPort } from '../domain/host-port.ts'
import { type Reader, readWhole, urlEscapes } from './reader.ts'
import { isRelayUrl, type ParsedRelay, parseRelayUrl } from './relay-url.ts'

export type RelayConfig = Pick<ParsedRelay, 'address' | 'takesReserved'> & {
  /** `host:port`, or the host of a mail API; with `#2` for the second relay there. */
  readonly name: string
  readonly connectionsMax: number
  /** Emails a second; null for no bound. */
  readonly rate: number | null
}

const name = 'POSTERN_SMTP_URL'

type ReadOptions = {
  readonly sends: boolean
  /** For relays whose URL names no other. */
  readonly greetingName: string | null
}

/**
 * Empty in dev mode unless relays are set: emails are then captured for the inbox. A process that does not
 * send needs none; it checks those that it knows.
 */
export function readRelays(reader: Reader, { greetingName, sends }: ReadOptions): RelayConfig[] {
  const { fault, isSet, mode, required, text } = reader
  const given = sends ? required(name) : text(name)
  if (given === '' || (given === 'capture' && mode === 'dev')) return []
  if (given === 'capture') {
    fault(`${name}: capture sends nothing; it is for dev mode`)
    return []
  }
  const connectionsMax = readWhole(reader, 'POSTERN_SMTP_CONNECTIONS')
  const rate = isSet('POSTERN_SMTP_RATE') ? readWhole(reader, 'POSTERN_SMTP_RATE') : null
  const entries = given.split(/[\s,]+/)
  // A space inside a password splits one URL into two, and neither half may be shown.
  if (!entries.slice(1).every(isRelayUrl)) {
    fault(`${name}: spaces and commas separate relays; ${urlEscapes}`)
    return []
  }
  const parsed = entries.flatMap((entry, index) => {
    const { relay, faults } = parseRelayUrl(entry)
    for (const text of faults) fault(`${name}, relay ${index + 1}: ${text}`)
    return relay === null ? [] : [relay]
  })
  return nameRelays(parsed).map(({ address, connectionsMax: own, rate: ownRate, ...relay }) => ({
    ...relay,
    address: address.protocol === 'smtp' ? { ...address, greetingName: address.greetingName ?? greetingName } : address,
    connectionsMax: own ?? connectionsMax,
    rate: ownRate ?? rate,
  }))
}

function nameRelays(relays: readonly ParsedRelay[]): (ParsedRelay & { readonly name: string })[] {
  const count = new Map<string, number>()
  return relays.map((relay) => {
    const { address } = relay
    const host = address.protocol === 'smtp' ? formatHostPort(address) : new URL(address.endpoint).host
    const nth = (count.get(host) ?? 0) + 1
    count.set(host, nth)
    return { ...relay, name: nth === 1 ? host : `${host}#${nth}` }
  })
}
