/**
 * How a call of a mail provider proves itself. Headers are bounded before they are taken apart. Times are
 * checked where the standard of the signature asks for it; elsewhere a repeated call changes nothing,
 * because reports are recorded once and count for days.
 */
import { createHmac, createVerify, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { FeedbackProvider } from '../delivery/feedback.ts'
import { includes, type SignedCall, verifyStandardWebhook } from '../signatures.ts'
import { type FeedbackKey, hashCredentials } from './feedback-keys.ts'
import { toFields, toText } from './json-fields.ts'

const headerCharactersMax = 1024
const unixSeconds = /^\d{1,12}$/

type Prove = (call: SignedCall, keys: readonly FeedbackKey[]) => boolean

const byBasic: Prove = ({ headers }, keys) => {
  const header = headers.authorization ?? ''
  const [, encoded] = header.length > headerCharactersMax ? [] : (/^basic +(\S+)$/i.exec(header) ?? [])
  if (encoded === undefined) return false
  const given = hashCredentials(Buffer.from(encoded, 'base64').toString())
  return keys.some((key) => key.kind === 'basic' && timingSafeEqual(given, key.hash))
}

/** Standard Webhooks, with other names of the headers. Each repeat is signed anew. */
const byResend: Prove = (call, keys) =>
  keys.some((key) => key.kind === 'resend' && verifyStandardWebhook(call, key.secret, 'svix'))

/** ECDSA over the time and the raw body. */
const bySendGrid: Prove = ({ headers, body }, keys) => {
  const timestamp = headers['x-twilio-email-event-webhook-timestamp'] ?? ''
  const signature = headers['x-twilio-email-event-webhook-signature'] ?? ''
  if (!unixSeconds.test(timestamp) || signature.length > headerCharactersMax) return false
  const fits = (publicKey: KeyObject) =>
    createVerify('sha256').update(timestamp).update(body).verify(publicKey, signature, 'base64')
  return keys.some((key) => key.kind === 'sendgrid' && fits(key.publicKey))
}

/** By the headers and the raw body. */
export const provesCall: Readonly<Record<FeedbackProvider, Prove>> = {
  postmark: byBasic,
  resend: byResend,
  sendgrid: bySendGrid,
  mailgun: byBasic,
  brevo: byBasic,
  generic: byBasic,
}

/**
 * Whether the signature in a body of Mailgun fits, if there is a key for it. It covers a time and a token,
 * and not the event. That of the main account stands beside that of a subaccount.
 */
export function provesMailgun(body: unknown, keys: readonly FeedbackKey[]): boolean {
  const secrets = keys.flatMap((key) => (key.kind === 'mailgun' ? [key.secret] : []))
  if (secrets.length === 0) return true
  const { signature, timestamp, token, ...others } = toFields(toFields(body).signature)
  const given = [signature, others['parent-signature']].map(toText)
  const signed = toText(timestamp) + toText(token)
  return secrets.some((secret) => includes(given, createHmac('sha256', secret).update(signed).digest('hex')))
}
