/** A transport: a named list of relays that apps may use instead of those of the service. */
import { type Parsed, parsed, refuser } from '../parsed.ts'

/** Each has connections, a breaker and counts of its own in every process that sends. */
export const transportsMax = 100
export const relaysPerTransport = 5

/** For people, the relays of the service. */
const serviceTransport = 'default'

/** The name of a relay of a transport, as records, log and metrics have it. */
export const relayPrefix = (transport: string): string => `${transport}/`

/** The transport of a relay, by the relay's name; null for a relay of the service. */
export function transportOf(relay: string): string | null {
  const end = relay.indexOf('/')
  return end < 0 ? null : relay.slice(0, end)
}

const namePattern = /^[a-z][a-z0-9-]{0,38}[a-z0-9]$/

export function parseTransportName(text: string, field = 'transport'): Parsed<string> {
  const refuse = refuser(field)
  if (text === serviceTransport)
    return refuse(
      'reserved_name',
      `"${serviceTransport}" is reserved for the relays of POSTERN_SMTP_URL: choose another name.`,
    )
  if (namePattern.test(text)) return parsed(text)
  return refuse('malformed_name', 'Use 2 to 40 lower-case letters, digits and hyphens, and begin with a letter.')
}
