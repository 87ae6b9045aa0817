/**
 * The grants by which a service gets a token without a person (RFC 6749 §4.4 and §6, RFC 7523), by
 * openid-client, which is loaded with the first use. An answer is bounded, and no redirect is followed.
 */
import { createHash, createPrivateKey, sign, X509Certificate } from 'node:crypto'
import type { ClientAuth, CustomFetch, ResponseBodyError, TokenEndpointResponse } from 'openid-client'
import { describeClockDifference } from '../../../domain/delivery/clock-difference.ts'
import { readRetryAfter } from '../../../domain/delivery/retry-after.ts'
import { redact } from '../../../domain/redaction/redact.ts'
import type { Grant, OAuthClient } from '../../../services/oauth-client.ts'
import { type GrantedToken, TokenFault } from './token-source.ts'

/** When the certificate of a client expires, in milliseconds since 1970; null without one. */
export const readCertificateExpiry = ({ grant }: OAuthClient): number | null =>
  grant.kind === 'key' && grant.certificate !== null ? Date.parse(new X509Certificate(grant.certificate).validTo) : null

/** Servers need not say how long a token lives (RFC 6749 §5.1). */
const usualSeconds = 3600
/** A token is asked for anew once a day, whatever its server says. */
const maxSeconds = 86_400
const textMax = 200
const answerMax = 65_536

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
      throw error instanceof library.ResponseBodyError
        ? readRefusal(error, { nowMs: clock(), secrets: listSecrets(client.grant) })
        : tokenServerFault(error, { nowMs: clock(), timeoutSeconds })
    }
  }

type Library = typeof import('openid-client')

async function request(
  library: Library,
  { tokenUrl, clientId, scope, grant }: OAuthClient,
  { clock, timeoutSeconds }: Required<GrantOptions>,
): Promise<TokenEndpointResponse> {
  const configure = (proof: ClientAuth) => {
    const server = { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl }
    const config = new library.Configuration(server, clientId, undefined, proof)
    config.timeout = timeoutSeconds
    config[library.customFetch] = boundedFetch
    if (tokenUrl.startsWith('http:')) library.allowInsecureRequests(config)
    return config
  }
  const parameters = { ...(scope !== null && { scope }) }
  switch (grant.kind) {
    case 'secret':
      return library.clientCredentialsGrant(configure(library.ClientSecretPost(grant.secret)), parameters)
    case 'key':
      return library.clientCredentialsGrant(configure(await proveByKey(library, grant, tokenUrl)), parameters)
    case 'refresh': {
      const proof = grant.secret === null ? library.None() : library.ClientSecretPost(grant.secret)
      return library.refreshTokenGrant(configure(proof), grant.refreshToken, parameters)
    }
    case 'service_account': {
      const assertion = newAssertion(grant, { tokenUrl, scope, nowMs: clock() })
      const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
      return library.genericGrantRequest(configure(library.None()), grantType, { assertion })
    }
    default:
      return grant satisfies never
  }
}

const boundedFetch: CustomFetch = async (url, { body, headers: sent, method, signal }) => {
  const response = await fetch(url, {
    ...{ body: body as NonNullable<RequestInit['body']>, headers: sent, method, redirect: 'manual' },
    ...(signal !== undefined && { signal }),
  })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > answerMax) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  const headers = new Headers(response.headers)
  headers.delete('www-authenticate') // the library would read the refusal from it and not from the body
  return new Response(Buffer.concat(chunks), { status: response.status, headers })
}

const proveByKey = async (
  library: Library,
  { certificate, key }: Extract<Grant, { kind: 'key' }>,
  tokenUrl: string,
): Promise<ClientAuth> =>
  library.PrivateKeyJwt(await importKey(key), {
    [library.modifyAssertion]: (header, payload) => {
      payload.aud = tokenUrl // some servers refuse the issuer
      payload.exp = Number(payload.iat) + assertionSeconds
      if (certificate !== null) header['x5t#S256'] = thumbprint(certificate)
    },
  })

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

/** There was no answer, or none of OAuth 2. */
function tokenServerFault(
  error: unknown,
  { nowMs, timeoutSeconds }: { readonly nowMs: number; readonly timeoutSeconds: number },
): TokenFault {
  const { cause, code: given, name } = error as { cause?: unknown; code?: unknown; name?: string }
  const code = typeof given === 'string' ? given : '' // a DOMException has a number
  const fault = (why: string, retryAfterMs: number | null = null) =>
    new TokenFault(`the token server: ${why}`, { lasting: false, retryAfterMs })
  if (cause instanceof Response && cause.status >= 500) {
    const asked = cause.status === 503 ? readRetryAfter(cause.headers.get('retry-after'), nowMs) : null
    return fault(`it answered ${cause.status}`, asked)
  }
  if (code === 'OAUTH_TIMEOUT' || name === 'TimeoutError') return fault(`no answer within ${timeoutSeconds} s`)
  const isOdd = cause instanceof Response || code.startsWith('OAUTH_')
  return fault(isOdd ? 'its answer is not one of OAuth 2' : 'it cannot be reached')
}

/** The server may repeat what it was sent, in whole or with the assertion cut. */
function readRefusal(
  { error: code, error_description: description = '', response, status }: ResponseBodyError,
  { nowMs, secrets }: { readonly nowMs: number; readonly secrets: readonly string[] },
): TokenFault {
  const lasting = status < 500 && lastingErrors.has(code)
  const { headers } = response
  const said = `${code}${description === '' ? '' : `: ${description}`}`
  const text = redact(said, { kind: 'other', secrets })
  const clock = describeClockDifference(headers.get('date'), nowMs)
  const retryAfterMs = status === 429 && !lasting ? readRetryAfter(headers.get('retry-after'), nowMs) : null
  return new TokenFault(`${text.slice(0, textMax)}${clock}`, { lasting, retryAfterMs })
}
