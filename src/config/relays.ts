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

/** For relays whose URL says nothing else. */
export type RelayDefaults = Pick<RelayConfig, 'connectionsMax' | 'rate'> & { readonly greetingName: string | null }

export const readRelayDefaults = (reader: Reader, greetingName: string | null): RelayDefaults => ({
  connectionsMax: readWhole(reader, 'POSTERN_SMTP_CONNECTIONS'),
  rate: reader.isSet('POSTERN_SMTP_RATE') ? readWhole(reader, 'POSTERN_SMTP_RATE') : null,
  greetingName,
})

/**
 * Empty in dev mode unless relays are set: emails are then captured for the inbox. A process that does not
 * send needs none; it checks those that it knows.
 */
export function readRelays(reader: Reader, defaults: RelayDefaults, { sends }: { sends: boolean }): RelayConfig[] {
  const { fault, mode, required, text } = reader
  const given = sends ? required(name) : text(name)
  if (given === '' || (given === 'capture' && mode === 'dev')) return []
  if (given === 'capture') {
    fault(`${name}: capture sends nothing; it is for dev mode`)
    return []
  }
  const { faults, relays } = parseRelayUrls(given.split(/[\s,]+/), parseRelayUrl)
  for (const { index, text } of faults) fault(`${name}${index === null ? '' : `, relay ${index + 1}`}: ${text}`)
  return toRelayConfigs(relays, defaults)
}

/** `index`: of the URL that has the fault; null if it is in the list. No text repeats a URL. */
export type RelayFault = { readonly index: number | null; readonly text: string }

export type ParsedRelays = { readonly relays: readonly ParsedRelay[]; readonly faults: readonly RelayFault[] }

export function parseRelayUrls(entries: readonly string[], parse: typeof parseRelayUrl): ParsedRelays {
  // A space inside a password splits one URL into two, and neither half may be shown.
  if (!entries.slice(1).every(isRelayUrl))
    return { relays: [], faults: [{ index: null, text: `spaces and commas separate relays; ${urlEscapes}` }] }
  const parsed = entries.map(parse)
  return {
    relays: parsed.flatMap(({ relay }) => relay ?? []),
    faults: parsed.flatMap(({ faults }, index) => faults.map((text) => ({ index, text }))),
  }
}

/** @param prefix of their names */
export const toRelayConfigs = (
  relays: readonly ParsedRelay[],
  { connectionsMax, greetingName, rate }: RelayDefaults,
  prefix = '',
): RelayConfig[] =>
  nameRelays(relays).map(({ address, connectionsMax: own, name, rate: ownRate, takesReserved }) => ({
    address: address.protocol === 'smtp' ? { ...address, greetingName: address.greetingName ?? greetingName } : address,
    connectionsMax: own ?? connectionsMax,
    name: prefix + name,
    rate: ownRate ?? rate,
    takesReserved,
  }))

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
