/** A service that takes the mail of auth servers, and calls as those make them. */
import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { hashDeliveryKey, newAuthHookSecret } from '../../src/domain/app/delivery-key.ts'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { sealAuthHookSecret } from '../../src/store/crypto/auth-hook-secret.ts'
import { operator } from './operator.ts'
import { newSender, startTestService, type TestOptions, testSettings } from './service.ts'
import type { Scope } from './temporary.ts'

export const authHookSettings: AppSettings = {
  ...testSettings,
  allowedUrls: ['https://app.acme.test', 'https://auth.acme.test'],
  allowCodes: true,
  limits: { ...testSettings.limits, recipientPerHour: 10_000 },
  authHooks: {
    supabase: {
      verifyUrl: 'https://auth.acme.test/auth/v1/verify',
      pages: { reauthentication: 'https://app.acme.test/code' },
    },
    kratos: { pages: { default: 'https://app.acme.test/code' } },
    zitadel: {},
    logto: { pages: { default: 'https://app.acme.test/code' } },
  },
}

/** A secret as Zitadel makes it itself. */
const newForeignSecret = (): string => randomBytes(24).toString('base64url')

export type Headers = Record<string, string>

/** The headers by which a system proves a body. */
/** The auth servers that tests play. */
export const authHookNames = ['supabase', 'kratos', 'zitadel', 'logto'] as const
export type AuthHookName = (typeof authHookNames)[number]

export function sign(system: AuthHookName, secret: string, body: string, atMs: number): Headers {
  const json = { 'content-type': 'application/json' }
  switch (system) {
    case 'supabase': {
      const id = `msg_${serial++}`
      const at = new Date(atMs)
      const signature = new Webhook(secret.replace(/^v1,/, '')).sign(id, at, body)
      const time = String(Math.floor(atMs / 1000))
      return { ...json, 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature }
    }
    case 'zitadel': {
      const time = Math.floor(atMs / 1000)
      const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
      return { ...json, 'zitadel-signature': `t=${time},v1=${signature}` }
    }
    default:
      return { ...json, authorization: `Bearer ${secret}` }
  }
}

let serial = 0

export async function startAuthHooks(scope: Scope, options: TestOptions = {}) {
  const service = await startTestService(scope, {
    authHooks: true,
    linksBaseUrl: 'https://links.acme.test',
    ...options,
    settings: { ...authHookSettings, ...options.settings },
  })
  const { ring } = service.config

  /** The secret of a system for an app, as the system holds it. */
  async function connect(system: AuthHookName, app = service.app) {
    const key = newAuthHookSecret()
    const hash = hashDeliveryKey(key)
    const { auth } = findSystem(system) ?? {}
    const secret = auth?.kind === 'signed' ? (auth.makeSecret?.() ?? newForeignSecret()) : key
    const sealed = auth?.kind === 'signed' ? { sealed: sealAuthHookSecret(ring, { hash }, secret) } : {}
    const name = `${system} ${serial++}`
    const made = await service.store.createKey(
      { app: app.id, hash, name, expiresAt: null, hook: system, ...sealed },
      operator,
    )
    if (made === null || typeof made === 'string') throw new Error('the secret was not made')
    return { id: made.id, secret }
  }

  const postRaw = async (path: string, body: string | Uint8Array, headers: Headers) => {
    const answer = await fetch(`${service.urls.authHooks}${path}`, {
      method: 'POST',
      headers,
      body: Buffer.from(body),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: JSON.parse(text) as Record<string, unknown>,
    }
  }

  /** A call as the system makes it. */
  const call = (system: AuthHookName, secret: string, body: object, slug = 'acme') => {
    const text = JSON.stringify(body)
    return postRaw(`/${system}/${slug}`, text, sign(system, secret, text, service.store.now()))
  }
  return {
    service,
    connect,
    postRaw,
    call,
    newApp: (slug: string, change: Partial<AppSettings> = {}) =>
      newSender(service, slug, { ...authHookSettings, ...change }),
  }
}
