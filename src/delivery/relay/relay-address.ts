/** Where a relay is, how to prove who sends, and what it rewrites: an SMTP server or a mail API. */
import type { ApiAddress } from './http/mail-api.ts'
import type { OAuthClient } from './oauth/grants.ts'
import type { SmtpAddress } from './smtp/connect.ts'

export type RelayAddress = SmtpAddress | ApiAddress

/** The client that gets the tokens of a relay's account; null if it proves itself without tokens. */
export function findOAuth(address: RelayAddress): OAuthClient | null {
  const account = address.protocol === 'smtp' ? address.credentials : address.account
  return account !== null && 'oauth' in account ? account.oauth : null
}

/**
 * The parts of a message that a relay replaces: `dates` the Date or the Message-ID, `all` what it composes
 * itself.
 */
export type Rewriting = 'nothing' | 'dates' | 'all'

/** SMTP servers of providers that replace the Message-ID or the Date, as their documents say. */
const datingHosts =
  /^(?:email-smtp\.[a-z0-9-]+\.amazonaws\.com|smtp(?:-relay)?\.gmail\.com|smtp\.office365\.com)$/

export function findRewriting(address: RelayAddress): Rewriting {
  if (address.protocol === 'smtp') {
    if (address.provider === 'postmark') return 'all'
    return address.provider !== null || datingHosts.test(address.host) ? 'dates' : 'nothing'
  }
  switch (address.account.provider) {
    case 'gmail':
    case 'graph':
    case 'ses':
      return 'dates'
    case 'resend':
    case 'postmark':
      return 'all'
    default:
      return address.account satisfies never
  }
}
