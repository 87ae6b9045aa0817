/**
 * A real OpenID provider (`oidc-provider`) on a socket, whose only user agrees to everything; and a browser
 * that follows redirects.
 */
import { createSign, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type KoaContextWithOIDC } from 'oidc-provider'
import { atEnd, type Scope } from './temporary.ts'

type Claims = { groups: readonly string[]; name: string }

export const client = { id: 'postern', secret: 'the-secret-of-the-client' }

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const strangeKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

type IdToken = Record<string, unknown>

/**
 * `change` edits the claims of the ID token, which is then signed again; `strange`: by a key that is not the
 * provider's.
 */
export type Forgery = { readonly change?: (claims: IdToken) => IdToken; readonly strange?: boolean }

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function forge(token: string, { change = (claims) => claims, strange = false }: Forgery): string {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as IdToken
  const signed = `${encode({ alg: 'RS256', kid: 'key' })}.${encode(change(claims))}`
  return `${signed}.${createSign('RSA-SHA256')
    .update(signed)
    .sign(strange ? strangeKey : privateKey, 'base64url')}`
}

/** @param redirect the address of the console to which people come back */
export async function startOpenIdProvider(scope: Scope, redirect: string, port = 0) {
  const user: Claims = { groups: [], name: 'ada' }
  const state: { forgery: Forgery | null } = { forgery: null }
  const server = createServer((request, response) => void provider.callback()(request, response))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atEnd(scope, () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirect] }],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'key', use: 'sig', alg: 'RS256' }] },
    claims: { profile: ['groups', 'preferred_username'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['a key of the test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: async () => ({ sub: accountId, groups: [...user.groups], preferred_username: user.name }),
    }),
  })
  provider.use(async (context, next) => {
    if (context.path.startsWith('/interaction/')) return agree(provider, context)
    await next()
    const body = context.body as { id_token?: string } | undefined
    if (state.forgery !== null && body?.id_token !== undefined)
      context.body = { ...body, id_token: forge(body.id_token, state.forgery) }
  })
  return { issuer, user, state }
}

async function agree(provider: Provider, { req, res }: Pick<KoaContextWithOIDC, 'req' | 'res'>): Promise<void> {
  const { prompt } = await provider.interactionDetails(req, res)
  if (prompt.name === 'login') return provider.interactionFinished(req, res, { login: { accountId: 'user-1' } })
  const grant = new provider.Grant({ accountId: 'user-1', clientId: client.id })
  grant.addOIDCScope('openid profile email')
  const grantId = await grant.save()
  await provider.interactionFinished(req, res, { consent: { grantId } }, { mergeWithLastSubmission: true })
}

type Following = {
  /** By host and name. */
  readonly cookies?: Map<string, string>
  /** Edits the address of each redirect. */
  readonly change?: (address: URL) => void
}

const redirectsMax = 20

/** Follows redirects like a browser with cookies. */
export async function follow(start: string, { cookies = new Map(), change = () => {} }: Following = {}) {
  let url = new URL(start)
  for (let step = 0; step < redirectsMax; step++) {
    const { host } = url
    const own = [...cookies].filter(([key]) => key.startsWith(`${host} `))
    const cookie = own.map(([key, value]) => `${key.slice(host.length + 1)}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { accept: 'text/html', cookie } })
    for (const each of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      cookies.set(`${host} ${name}`, value)
    }
    const location = response.headers.get('location')
    if (location === null) return { url, status: response.status, text: await response.text() }
    await response.arrayBuffer()
    url = new URL(location, url)
    change(url)
  }
  throw new Error('too many redirects')
}
