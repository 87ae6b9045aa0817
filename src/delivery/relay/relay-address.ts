/** Where a relay is, how to prove who sends, and what it does to a message: an SMTP server or a mail API. */
import { plainRelay, type RelayTraits } from '../../domain/delivery/relay-traits.ts'
import type { ApiAddress } from '../../services/mail-api.ts'
import type { OAuthClient } from '../../services/oauth-client.ts'
import type { SmtpAddress } from './smtp/connect.ts'

export type RelayAddress = SmtpAddress | ApiAddress

/** The client that gets the tokens of a relay's account; null if it proves itself without tokens. */
export function findOAuth(address: RelayAddress): OAuthClient | null {
  const account = address.protocol === 'smtp' ? address.credentials : address.account
  return account !== null && 'oauth' in account ? account.oauth : null
}

const google: RelayTraits = { rewrites: 'dates', envelope: 'bounce', include: '_spf.google.com' }
const microsoft: RelayTraits = {
  ...{ rewrites: 'dates', envelope: 'bounce', include: 'spf.protection.outlook.com' },
}
const resending: RelayTraits = { rewrites: 'dates', envelope: 'relay', include: null }
const composing: RelayTraits = { rewrites: 'all', envelope: 'relay', include: null }

const hosts: Readonly<Record<string, RelayTraits>> = {
  ...{ 'smtp.gmail.com': google, 'smtp-relay.gmail.com': google, 'smtp.office365.com': microsoft },
}

export function findTraits(address: RelayAddress): RelayTraits {
  if (address.protocol === 'https') return apiTraits[address.account.provider]
  const { host, keepsSender, provider } = address
  if (provider === 'postmark') return composing
  if (provider !== null || /^email-smtp\.[a-z0-9-]+\.amazonaws\.com$/.test(host)) return resending
  const traits = Object.hasOwn(hosts, host) ? (hosts[host] ?? plainRelay) : plainRelay
  return keepsSender ? { ...traits, envelope: 'from' } : traits
}

const apiTraits: Readonly<Record<ApiAddress['account']['provider'], RelayTraits>> = {
  gmail: { ...google, envelope: 'from' },
  graph: { ...microsoft, envelope: 'from' },
  ses: resending,
  resend: composing,
  postmark: composing,
}
