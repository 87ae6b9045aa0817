/**
 * The grants by which a service gets a token without a person (RFC 6749 §4.4 and §6, RFC 7523), by
 * openid-client, which is loaded with the first use.
 */
import { createHash, createPrivateKey, sign, X509Certificate } from 'node:crypto'
import type { ClientAuth, ResponseBodyError, TokenEndpointResponse } from 'openid-client'
import { describeClockDifference } from '../../../domain/delivery/clock-difference.ts'
import { readRetryAfter } from '../../../domain/delivery/retry-after.ts'
import { redact } from '../../../domain/redaction/redact.ts'
import type { Grant, OAuthClient } from '../../../services/oauth-client.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { type GrantedToken, TokenFault } from './token-source.ts'

/** When the certificate of a client expires, in milliseconds since 1970; null without one. */
export const readCertificateExpiry = ({ grant }: OAuthClient): number | null =>
  grant.kind === 'key' && grant.certificate !== null ? Date.parse(new X509Certificate(grant.certificate).validTo) : null

/** Servers need not say how long a token lives (RFC 6749 §5.1). */
const usualSeconds = 3600
/** A token is asked for anew once a day, whatever its server says. */
const maxSeconds = 86_400
const textMax = 200

/** With these, another request cannot succeed until an operator acts. */
const lastingErrors = new Set([
  'invalid_client',
  'unauthorized_client',
  'invalid_grant',
  'invalid_scope',
  'access_denied',
])

type GrantOptions = {
  /** The wall clock, for assertions. */
  readonly clock?: () => number
  readonly timeoutSeconds?: number
}

/** Asks for a token. Throws `TokenFault`. */
export const newGrant =
  (client: OAuthClient, { clock = () => Date.now(), timeoutSeconds = 10 }: GrantOptions = {}) =>
  async (): Promise<GrantedToken> => {
    const library = await import('openid-client')
    try {
      const { access_token: text, expires_in } = await request(library, client, { clock, timeoutSeconds })
      return { text, expiresInSeconds: Math.min(expires_in ?? usualSeconds, maxSeconds) }
    } catch (error) {
      const isAnswer = error instanceof library.ResponseBodyError
      throw toFault(error, {
        isAnswer,
        nowMs: clock(),
        secrets: listSecrets(client.grant),
        timeoutSeconds,
      })
    }
  }

type Library = typeof import('openid-client')

async function request(
  library: Library,
  { tokenUrl, clientId, scope, grant }: OAuthClient,
  { clock, timeoutSeconds }: Required<GrantOptions>,
): Promise<TokenEndpointResponse> {
  const server = { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl }
  const config = new library.Configuration(server, clientId, undefined, await prove(library, grant, tokenUrl))
  config.timeout = timeoutSeconds
  config[library.customFetch] = boundedFetch
  if (tokenUrl.startsWith('http:')) library.allowInsecureRequests(config)
  const parameters = { ...(scope !== null && { scope }) }
  switch (grant.kind) {
    case 'secret':
    case 'key':
      return library.clientCredentialsGrant(config, parameters)
    case 'refresh':
      return library.refreshTokenGrant(config, grant.refreshToken, parameters)
    case 'service_account': {
      const assertion = newAssertion(grant, { tokenUrl, scope, nowMs: clock() })
      return library.genericGrantRequest(config, 'urn:ietf:params:oauth:grant-type:jwt-bearer', { assertion })
    }
    default:
      return grant satisfies never
  }
}

async function prove(library: Library, grant: Grant, tokenUrl: string): Promise<ClientAuth> {
  switch (grant.kind) {
    case 'secret':
      return library.ClientSecretPost(grant.secret)
    case 'refresh':
      return grant.secret === null ? library.None() : library.ClientSecretPost(grant.secret)
    case 'service_account':
      return library.None()
    case 'key': {
      const { key, certificate } = grant
      return library.PrivateKeyJwt(await importKey(key), {
        [library.modifyAssertion]: (header, payload) => {
          payload.aud = tokenUrl // some servers refuse the issuer
          payload.exp = Number(payload.iat) + assertionSeconds
          if (certificate !== null) header['x5t#S256'] = thumbprint(certificate)
        },
      })
    }
    default:
      return grant satisfies never
  }
}

function importKey(pem: string): Promise<CryptoKey> {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' })
  return crypto.subtle.importKey('pkcs8', new Uint8Array(der), { name: 'RSA-PSS', hash: 'SHA-256' }, false, ['sign'])
}

const thumbprint = (certificate: string): string =>
  createHash('sha256').update(new X509Certificate(certificate).raw).digest('base64url')

/** The machine's clock may be some seconds ahead. */
const backSeconds = 30
const assertionSeconds = 600

type AssertionOptions = { readonly tokenUrl: string; readonly scope: string | null; readonly nowMs: number }

/** RFC 7523 §2.1, as service accounts sign it. */
function newAssertion(
  { account, mailbox }: Extract<Grant, { kind: 'service_account' }>,
  { tokenUrl, scope, nowMs }: AssertionOptions,
): string {
  const iat = Math.floor(nowMs / 1000) - backSeconds
  const header = { alg: 'RS256', typ: 'JWT', ...(account.keyId !== null && { kid: account.keyId }) }
  const claims = {
    ...{ iss: account.email, sub: mailbox, aud: tokenUrl, iat, exp: iat + assertionSeconds },
    ...(scope !== null && { scope }),
  }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), createPrivateKey(account.key)).toString('base64url')}`
}

const listSecrets = (grant: Grant): string[] => {
  if (grant.kind === 'secret') return [grant.secret]
  return grant.kind === 'refresh' ? [grant.refreshToken, grant.secret ?? ''] : []
}

type Asking = { readonly nowMs: number; readonly secrets: readonly string[] }
type Failed = Asking & { readonly isAnswer: boolean; readonly timeoutSeconds: number }

function toFault(error: unknown, { isAnswer, nowMs, secrets, timeoutSeconds }: Failed): TokenFault {
  if (isAnswer) return readRefusal(error as ResponseBodyError, { nowMs, secrets })
  const { cause, code: given, name } = error as { cause?: unknown; code?: unknown; name?: string }
  const code = typeof given === 'string' ? given : '' // a DOMException has a number
  if (cause instanceof Response) {
    const { headers, status } = cause
    const why = status >= 500 ? `it answered ${status}` : 'its answer is not one of OAuth 2'
    return tokenServerFault(why, status === 503 ? readRetryAfter(headers.get('retry-after'), nowMs) : null)
  }
  const isLate = code === 'OAUTH_TIMEOUT' || name === 'TimeoutError'
  const isOdd = code.startsWith('OAUTH_')
  return tokenServerFault(
    isLate
      ? `no answer within ${timeoutSeconds} s`
      : isOdd
        ? 'its answer is not one of OAuth 2'
        : 'it cannot be reached',
  )
}

const tokenServerFault = (why: string, retryAfterMs: number | null = null): TokenFault =>
  new TokenFault(`the token server: ${why}`, { lasting: false, retryAfterMs })

/** The server may repeat what it was sent, in whole or with the assertion cut. */
function readRefusal(
  { error: code, error_description: description = '', response, status }: ResponseBodyError,
  { nowMs, secrets }: Asking,
): TokenFault {
  const lasting = status < 500 && lastingErrors.has(code)
  const { headers } = response
  const asked = readRetryAfter(headers.get('retry-after'), nowMs)
  const said = `${code}${description === '' ? '' : `: ${description}`}`
  const text = redact(said, { kind: 'other', secrets })
  const clock = describeClockDifference(headers.get('date'), nowMs)
  return new TokenFault(`${text.slice(0, textMax)}${clock}`, {
    lasting,
    retryAfterMs: status === 429 && !lasting ? asked : null,
  })
}
