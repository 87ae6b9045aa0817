/** A real OAuth server (oidc-provider) for programs: by a secret, by a signed assertion, by Google's JWT. */
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { atEnd, type Scope } from './temporary.ts'

const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const newKey = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = (key: KeyObject, more: object) => ({ ...key.export({ format: 'jwk' }), ...more })
const toPem = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }) as string

const [application, robot] = [newKey(), newKey()]

export const secret = 'the-secret-of-the-relay'
export const applicationKey = toPem(application.privateKey)
export const serviceAccount = { email: 'robot@acme.iam', key: toPem(robot.privateKey), keyId: 'r1' }

export async function startTokenServer(scope: Scope) {
  const server = createServer((request, response) => void provider.callback()(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(scope, () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const grant_types = ['client_credentials']
  const common = { redirect_uris: [], response_types: [], scope: 'mail' }
  const provider = new Provider(issuer, {
    scopes: ['mail'],
    clients: [
      {
        ...common,
        client_id: 'by-secret',
        client_secret: secret,
        token_endpoint_auth_method: 'client_secret_post',
        grant_types,
      },
      {
        ...common,
        client_id: 'by-key',
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'PS256',
        jwks: { keys: [jwk(application.publicKey, { kid: 'a1', use: 'sig' })] },
        grant_types,
      },
      {
        ...common,
        client_id: serviceAccount.email,
        token_endpoint_auth_method: 'none',
        grant_types: [jwtBearer],
      },
    ],
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    ttl: { ClientCredentials: 3600 },
  })
  /** Mailboxes for which the service account asked. */
  const delegated: string[] = []
  provider.registerGrantType(
    jwtBearer,
    async (context) => {
      const [header = '', claims = '', signature = ''] = String(context.oidc.params.assertion).split('.')
      const key = createPublicKey(robot.privateKey)
      const isSigned = verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))
      const { aud, exp, iat, iss, scope: asked, sub } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      const now = Date.now() / 1000
      if (
        !isSigned ||
        aud !== `${issuer}/token` ||
        iss !== serviceAccount.email ||
        asked !== 'mail' ||
        !(iat <= now && now < exp && exp - iat <= 3600)
      ) {
        context.status = 400
        context.body = { error: 'invalid_grant', error_description: 'Invalid JWT' }
        return
      }
      delegated.push(sub)
      const token = new provider.ClientCredentials({ client: context.oidc.client as never, scope: 'mail' })
      context.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: 3600 }
    },
    ['assertion', 'scope'],
  )
  const isValid = async (token: string) => (await provider.ClientCredentials.find(token)) !== undefined
  return { tokenUrl: `${issuer}/token`, isValid, delegated }
}
