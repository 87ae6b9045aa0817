/** Where a relay is, how to prove who sends, and how it treats a message: an SMTP server or a mail API. */
import { plainRelay, type RelayTraits } from '../../domain/delivery/relay-traits.ts'
import type { OAuthClient } from '../../services/oauth-client.ts'
import type { ApiMailService } from '../../services/services.ts'
import type { SmtpAddress } from './smtp/connect.ts'

export type RelayAddress = SmtpAddress | ApiAddress

export type ApiAddress = {
  readonly protocol: 'https'
  readonly service: ApiMailService
  /** Made by `service.api.readAccount`, and understood by `service.api.open`. */
  readonly account: unknown
  /** Null for an API that takes no access tokens. */
  readonly oauth: OAuthClient | null
  /** The origin of the API: https, or http on loopback. */
  readonly endpoint: string
  /** Certificate authorities in PEM, in place of those that Node trusts. */
  readonly ca?: string
}

/** The client that gets the tokens of a relay's account; null if it proves itself without tokens. */
export function findOAuth(address: RelayAddress): OAuthClient | null {
  if (address.protocol === 'https') return address.oauth
  const { credentials } = address
  return credentials !== null && 'oauth' in credentials ? credentials.oauth : null
}

export function relayTraits(address: RelayAddress): RelayTraits {
  if (address.protocol === 'https') return address.service.api.traits
  const traits = address.service?.smtp.traits ?? plainRelay
  return address.keepsSender && traits.envelope === 'bounce' ? { ...traits, envelope: 'from' } : traits
}
