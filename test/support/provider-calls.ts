/** Webhooks of mail providers: their secrets, and how each signs a call. */
import { createHmac, generateKeyPairSync, sign as signBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { type EventKey, parseEventKeys } from '../../src/services/event-keys.ts'
import type { Headers } from './auth-hooks.ts'

/** Services whose calls `test/corpus/provider-calls` has. */
export const callers = ['postmark', 'resend', 'sendgrid', 'mailgun', 'brevo', 'generic'] as const
export type Caller = (typeof callers)[number]

const sample = 'em_01k9zc3v7mabcdefghjkmnpqrs.0123456789'
const corpus = new URL('../corpus/provider-calls/', import.meta.url)

/** A payload of `test/corpus/provider-calls` about an email. */
export const readPayload = (
  provider: Caller,
  name: string,
  { reference, to = 'ada@example.com' }: { readonly reference: string; readonly to?: string },
): unknown =>
  JSON.parse(
    readFileSync(new URL(`${provider}/${name}.json`, corpus), 'utf8')
      .replaceAll(sample, reference)
      .replaceAll('ada@example.com', to),
  )

export type Secrets = ReturnType<typeof newSecrets>

/** Those of one account at each provider. */
export function newSecrets(seed = 1) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    basic: `postern:${String(seed).repeat(20)}`,
    resend: Buffer.alloc(24, seed).toString('base64'),
    sendgrid: privateKey,
    sendgridPublic: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    mailgun: `signing-key-${seed}-0123456789`,
  }
}

/** As in `POSTERN_REPORTS_KEYS`. */
export const writeKeys = ({ basic, mailgun, resend, sendgridPublic }: Secrets): string =>
  `basic:${basic} resend:whsec_${resend} sendgrid:${sendgridPublic} mailgun:${mailgun}`

export function readKeys(text: string): readonly EventKey[] {
  const { faults, keys } = parseEventKeys(text)
  if (faults.length > 0) throw new Error(faults.join('; '))
  return keys
}

export const basicHeader = (credentials: string): Headers => ({
  authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
})

let serial = 0

/** The body as the provider sends it, and the headers that prove it. */
export function signCall(
  provider: Caller,
  secrets: Secrets,
  { body, atMs }: { readonly body: unknown; readonly atMs: number },
): { readonly headers: Headers; readonly text: string } {
  const text = provider === 'mailgun' ? JSON.stringify(signBody(body, secrets, atMs)) : JSON.stringify(body)
  return {
    text,
    headers: { 'content-type': 'application/json', ...prove(provider, secrets, { text, atMs }) },
  }
}

/** The headers that prove a text as it is. */
export function prove(
  provider: Caller,
  secrets: Secrets,
  { text, atMs }: { readonly text: string; readonly atMs: number },
): Headers {
  const time = String(Math.floor(atMs / 1000))
  switch (provider) {
    case 'resend': {
      const id = `msg_${serial++}`
      const signature = new Webhook(secrets.resend).sign(id, new Date(atMs), text)
      return { 'svix-id': id, 'svix-timestamp': time, 'svix-signature': signature }
    }
    case 'sendgrid':
      return {
        'x-twilio-email-event-webhook-timestamp': time,
        'x-twilio-email-event-webhook-signature': signBytes(
          'sha256',
          Buffer.from(time + text),
          secrets.sendgrid,
        ).toString('base64'),
      }
    default:
      return basicHeader(secrets.basic)
  }
}

/** A body of Mailgun with its signature. */
export function signBody(body: unknown, { mailgun }: Secrets, atMs: number): object {
  const timestamp = String(Math.floor(atMs / 1000))
  const token = String(serial++).padStart(50, 'a')
  const signature = createHmac('sha256', mailgun)
    .update(timestamp + token)
    .digest('hex')
  return { ...(body as object), signature: { timestamp, token, signature } }
}
