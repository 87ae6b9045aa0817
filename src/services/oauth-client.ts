/** How Postern gets the access tokens of a relay's account (RFC 6749, RFC 7523). */

/** How a client proves itself, and what for. */
export type Grant =
  | { readonly kind: 'secret'; readonly secret: string }
  /** A signed assertion. Microsoft needs the certificate, whose digest goes along. */
  | { readonly kind: 'key'; readonly key: string; readonly certificate: string | null }
  /** The key file of a Google service account, which acts for a mailbox. */
  | { readonly kind: 'service_account'; readonly account: ServiceAccount; readonly mailbox: string }
  | { readonly kind: 'refresh'; readonly refreshToken: string; readonly secret: string | null }

type ServiceAccount = { readonly email: string; readonly key: string; readonly keyId: string | null }

export type OAuthClient = {
  /** https, or http on loopback. */
  readonly tokenUrl: string
  readonly clientId: string
  readonly scope: string | null
  readonly grant: Grant
}
