/** A relay as one process sees it. */

/** The relay of dev mode, which captures emails for the inbox. */
export const captureRelayName = 'capture'

type RelayConnections = {
  /** Being opened: a relay that does not greet keeps them here. */
  readonly connecting: number
  readonly open: number
  readonly busy: number
  /** How many may be open now. */
  readonly allowed: number
  readonly max: number
}

/** Said of a relay in a private network. */
export const inClear =
  'without TLS (tls=none): anybody who can read the traffic between this machine and the relay can open every link'

/** The part of a relay that is measured. */
export type MeasuredRelay = {
  /** `host:port`. */
  readonly name: string
  /** When the certificate expires that gets its tokens, in milliseconds since 1970; null without one. */
  readonly certificateExpiresAt: number | null
  isAvailable(): boolean
  connections(): RelayConnections
}

/** A time in which a relay took no mail, in milliseconds since 1970. */
export type Outage = {
  readonly relay: string
  readonly from: number
  readonly until: number
  readonly reason: string
}

export type RelayState = Pick<MeasuredRelay, 'name' | 'certificateExpiresAt'> & {
  readonly available: boolean
  /** Whether an attempt of this process has ended: before, it only seems to be available. */
  readonly tried: boolean
  /** Since when, in milliseconds since 1970. */
  readonly since: number
  /** The reply or fault that made it unavailable; empty while it is available. */
  readonly reason: string
  readonly connections: RelayConnections
  /** The last time that it was unavailable and came back; null if it never was. */
  readonly lastOutage: Omit<Outage, 'relay'> | null
}
