/** A service with a submission listener, and mail programs that log in to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import { hashDeliveryKey, newAuthHookSecret } from '../../src/domain/app/delivery-key.ts'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import type { AppId, EmailId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from './operator.ts'
import { newSender, startTestService, type TestOptions, testSettings } from './service.ts'
import { atEnd, type Scope } from './temporary.ts'

export const submissionSettings: AppSettings = {
  ...testSettings,
  allowedUrls: ['https://app.acme.test', 'https://cms.acme.test/admin/*', 'https://git.acme.test'],
  limits: { keyPerMinute: 100_000, recipientPerHour: 10_000, daily: 1_000_000 },
}

const anyPort = { address: { host: '127.0.0.1', port: 0 }, tls: null }

/** Returns the secret of a system, as `auth-hook connect` makes it. */
export async function connectSystem(store: Store, app: AppId, system: string): Promise<string> {
  const secret = newAuthHookSecret()
  const key = { app, hash: hashDeliveryKey(secret), name: null, expiresAt: null, hook: system }
  const made = await store.createKey(key, operator)
  if (made === null || typeof made === 'string') throw new Error('the secret was not made')
  return secret
}

export async function startSubmission(scope: Scope, options: TestOptions = {}) {
  const service = await startTestService(scope, {
    submission: anyPort,
    linksBaseUrl: 'https://links.acme.test',
    ...options,
    settings: { ...submissionSettings, ...options.settings },
  })
  const connect = (system: string, app = service.app) => connectSystem(service.store, app.id, system)
  const port = Number(new URL(service.urls.submission ?? 'smtp://none:1').port)
  /** A mail program. */
  const program = (user: string, pass: string, more: object = {}) => {
    const transport = nodemailer.createTransport({ host: '127.0.0.1', port, auth: { user, pass }, ...more })
    atEnd(scope, () => transport.close())
    return transport
  }
  const newApp = (slug: string, change: Partial<AppSettings> = {}) =>
    newSender(service, slug, { ...submissionSettings, ...change })
  return { connect, newApp, port, program, service }
}

/** The reply to a message: code and text, also of a refusal. */
export async function replyTo(sending: Promise<{ response: string }>): Promise<string> {
  try {
    return (await sending).response
  } catch (error) {
    return (error as { response?: string }).response ?? String(error)
  }
}

/** Programs that send steadily, with a connection for each message. `acknowledged`: emails answered 250. */
export function startMailLoad(scope: Scope, { port, secret }: { readonly port: number; readonly secret: string }) {
  const state = { on: true }
  const acknowledged = new Set<EmailId>()
  const run = async (client: number) => {
    const transport = nodemailer.createTransport({ host: '127.0.0.1', port, auth: { user: 'acme', pass: secret } })
    for (let n = 0; state.on; n++) {
      const text = `https://app.acme.test/admin/reset-password?token=c${client}n${n}`
      const reply = await replyTo(
        transport.sendMail({ from: 'cms@acme.test', to: `m${client}n${n}@example.com`, subject: 'Reset', text }),
      )
      const id = /^250 .*(em_\w+)/.exec(reply)?.[1]
      if (id === undefined)
        await sleep(20) // its process was killed: not acknowledged
      else acknowledged.add(id as EmailId)
    }
  }
  const done = Promise.all([run(0), run(1), run(2), run(3)])
  const stop = async () => {
    state.on = false
    await done
  }
  atEnd(scope, stop)
  return { acknowledged, stop }
}
