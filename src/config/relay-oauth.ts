/** The OAuth options of a relay's URL. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Grant, OAuthClient } from '../services/oauth-client.ts'
import { findTokenService, type TokenService, tokenServices } from '../services/services.ts'
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
  /** The service whose tokens are used if the URL names none. */
  readonly usual: string | null
  /** @param service the one that the URL names; null for another token server */
  readonly toScope: (service: TokenService | null) => string | null
}

/** Null if a fault was reported. */
export function readOAuth(given: RelayUrl, { mailbox, usual, toScope }: OAuthNeeds): OAuthClient | null {
  const { option, fault } = given
  const name = option('oauth') ?? usual ?? ''
  const service = findTokenService(name)
  const tokenUrl = service === null ? readTokenUrl(name, fault) : toTokenUrl(given, service)
  const grant = readGrant(given, { mailbox, service })
  if (tokenUrl === null || grant === null) return null
  const clientId = grant.kind === 'service_account' ? grant.account.email : (option('client') ?? '')
  if (clientId === '') {
    fault('oauth needs client, the id of the application')
    return null
  }
  return { tokenUrl, clientId, scope: option('scope') ?? toScope(service), grant }
}

function toTokenUrl({ option, fault }: RelayUrl, { name, tokens }: TokenService): string | null {
  const tenant = option('tenant') ?? ''
  if (tokens.hasTenants !== true || /^[\w.-]{1,100}$/.test(tenant)) return tokens.tokenUrl(tenant)
  fault(`oauth=${name} needs tenant, the id or a domain of your tenant`)
  return null
}

function readTokenUrl(given: string, fault: RelayUrl['fault']): string | null {
  const url = URL.parse(given)
  if (url !== null && isSafeUrl(url) && url.username === '' && url.hash === '') return url.href
  const names = tokenServices.map(({ name }) => name).join(', ')
  fault(`oauth is ${names}, or the https URL of a token endpoint`)
  return null
}

type GrantNeeds = { readonly mailbox: string; readonly service: TokenService | null }

function readGrant({ option, fault }: RelayUrl, { mailbox, service }: GrantNeeds): Grant | null {
  const read = (name: string) => {
    const given = option(name)
    return given === null ? null : readGivenSecret(given, name, fault)
  }
  const [secret, key, refresh] = [read('secret'), read('key'), read('refresh')]
  if (secret === '' || key === '' || refresh === '') return null // a fault was reported
  const wrongSecret = secret === null ? null : (service?.tokens.faultOfSecret?.(secret) ?? null)
  if (wrongSecret !== null) {
    fault(wrongSecret)
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

/** The JSON file of a service account's key; or its fault. */
function readServiceAccount(text: string, mailbox: string): Grant | string {
  const wrong = 'key is not the JSON file of a service account: make a key of type JSON'
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
    if (Date.parse(validTo) <= Date.now()) return `the certificate in key expired on ${validTo}: make a new one`
    return { kind: 'key', key: text, certificate }
  } catch {
    return 'the certificate in key cannot be read'
  }
}
