/** Where a relay is, and how to prove who sends: an SMTP server or a mail API. */
import type { ApiAddress } from './http/mail-api.ts'
import type { OAuthClient } from './oauth/grants.ts'
import type { SmtpAddress } from './smtp/connect.ts'

export type RelayAddress = SmtpAddress | ApiAddress

/** The client that gets the tokens of a relay's account; null if it proves itself without tokens. */
export function findOAuth(address: RelayAddress): OAuthClient | null {
  const account = address.protocol === 'smtp' ? address.credentials : address.account
  return account !== null && 'oauth' in account ? account.oauth : null
}
