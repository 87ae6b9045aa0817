/** The OAuth options of a relay's URL. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Grant, OAuthClient } from '../services/oauth-client.ts'
import { isSafeUrl } from './listeners.ts'
import { readGivenSecret } from './secrets.ts'

/** One URL that is being read. */
export type RelayUrl = {
  readonly url: URL
  /** The value of an option; null if it is not given. */
  readonly option: (name: string) => string | null
  readonly fault: (text: string) => void
}

export const oauthOptions = ['oauth', 'tenant', 'client', 'secret', 'key', 'refresh', 'scope']

type OAuthNeeds = {
  /** For which tokens are asked. */
  readonly mailbox: string
  /** By provider: what a token is for. */
  readonly scopes: { readonly microsoft: string; readonly google: string }
  /** The provider if the URL names none. */
  readonly usual?: 'microsoft' | 'google'
}

/** Null if a fault was reported. */
export function readOAuth(given: RelayUrl, { mailbox, scopes, usual }: OAuthNeeds): OAuthClient | null {
  const { option, fault } = given
  const provider = option('oauth') ?? usual ?? ''
  const server = readServer(given, provider)
  const grant = readGrant(given, { mailbox, isMicrosoft: (option('oauth') ?? usual) === 'microsoft' })
  if (server === null || grant === null) return null
  const clientId = grant.kind === 'service_account' ? grant.account.email : (option('client') ?? '')
  if (clientId === '') {
    fault('oauth needs client, the id of the application')
    return null
  }
  const known =
    provider === 'microsoft' || provider === 'google' ? scopes[provider] : usualScope(scopes, usual)
  return { ...server, clientId, scope: option('scope') ?? known, grant }
}

const usualScope = (scopes: OAuthNeeds['scopes'], usual: OAuthNeeds['usual']): string | null =>
  usual === undefined ? null : scopes[usual]

function readServer({ option, fault }: RelayUrl, provider: string): Pick<OAuthClient, 'tokenUrl'> | null {
  if (provider === 'google') return { tokenUrl: 'https://oauth2.googleapis.com/token' }
  if (provider === 'microsoft') {
    const tenant = option('tenant') ?? ''
    if (/^[\w.-]{1,100}$/.test(tenant))
      return { tokenUrl: `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/token` }
    fault('oauth with Microsoft needs tenant, the id or a domain of your tenant')
    return null
  }
  const url = URL.parse(provider)
  if (url !== null && isSafeUrl(url) && url.username === '' && url.hash === '') return { tokenUrl: url.href }
  fault('oauth is microsoft, google, or the https URL of a token endpoint')
  return null
}

type GrantNeeds = { readonly mailbox: string; readonly isMicrosoft: boolean }

function readGrant({ option, fault }: RelayUrl, { mailbox, isMicrosoft }: GrantNeeds): Grant | null {
  const read = (name: string) => {
    const given = option(name)
    return given === null ? null : readGivenSecret(given, name, fault)
  }
  const [secret, key, refresh] = [read('secret'), read('key'), read('refresh')]
  if (secret === '' || key === '' || refresh === '') return null // a fault was reported
  if (secret !== null && isMicrosoft && isGuid(secret)) {
    fault('secret is the Secret ID; copy the Value of the client secret, which is shown once')
    return null
  }
  if (refresh !== null && key === null) return { kind: 'refresh', refreshToken: refresh, secret }
  if (secret !== null && key === null) return { kind: 'secret', secret }
  if (key === null || secret !== null || refresh !== null) {
    fault('oauth needs one of secret, key and refresh, each best as file:PATH')
    return null
  }
  const grant = key.startsWith('{') ? readServiceAccount(key, mailbox) : readCertificate(key)
  if (typeof grant !== 'string') return grant
  fault(grant)
  return null
}

const isGuid = (text: string): boolean => /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i.test(text)

/** The JSON that Google Cloud makes for a key of a service account; or its fault. */
function readServiceAccount(text: string, mailbox: string): Grant | string {
  const wrong = 'key is not the JSON file of a service account: make a key of type JSON in Google Cloud'
  try {
    const { client_email, private_key, private_key_id } = JSON.parse(text) as Record<string, unknown>
    if (typeof client_email !== 'string' || typeof private_key !== 'string') return wrong
    if (createPrivateKey(private_key).asymmetricKeyType !== 'rsa') return wrong
    const keyId = typeof private_key_id === 'string' ? private_key_id : null
    return {
      kind: 'service_account',
      account: { email: client_email, key: private_key, keyId },
      mailbox,
    }
  } catch {
    return wrong
  }
}

/** A private key in PEM, with its certificate where the server needs one; or its fault. */
function readCertificate(text: string): Grant | string {
  try {
    if (createPrivateKey(text).asymmetricKeyType !== 'rsa')
      return 'key holds a private key that is not RSA: make one with openssl req -newkey rsa:2048'
  } catch {
    return 'key holds no private key that can be read: put certificate and private key (PEM, without a passphrase) into one file'
  }
  const begin = text.indexOf('-----BEGIN CERTIFICATE-----')
  if (begin < 0) return { kind: 'key', key: text, certificate: null }
  try {
    const certificate = text.slice(begin)
    const { validTo } = new X509Certificate(certificate)
    if (Date.parse(validTo) <= Date.now())
      return `the certificate in key expired on ${validTo}: make a new one`
    return { kind: 'key', key: text, certificate }
  } catch {
    return 'the certificate in key cannot be read'
  }
}
