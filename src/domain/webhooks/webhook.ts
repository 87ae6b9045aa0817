/** Webhooks: messages to an app about trouble with its emails, after Standard Webhooks 1.0. */
import { hourMs, minuteMs } from '../duration.ts'
import type { EmailId, WebhookMessageId } from '../id.ts'
import type { EmailType } from '../request/email-kinds.ts'

export const webhookEvents = [
  'email.bounced',
  'email.complained',
  'email.suppressed',
  'email.failed',
  'webhook.test',
] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** The data of a message besides the recipient, which is sealed as long as the message is kept. */
export type WebhookFacts = {
  readonly emailType?: EmailType
  /** For a bounce, what the reply is about; otherwise the reason of the email. */
  readonly cause?: string
  /** For a bounce: no later attempt would succeed. */
  readonly permanent?: boolean
  /** The email was sent with a test key; nothing of it is real. */
  readonly test?: true
  /** Until when the recipient gets no such email, in ISO 8601. */
  readonly suppressedUntil?: string
}

export type WebhookMessage = {
  readonly id: WebhookMessageId
  readonly event: WebhookEvent
  /** Null in a test. */
  readonly email: EmailId | null
  readonly facts: WebhookFacts
  /** When it happened, in milliseconds since 1970. */
  readonly at: number
}

/** The body is the same at each try. `to` is null if the report did not name the recipient. */
export function writeWebhook({ event, email, facts, at }: WebhookMessage, to: string | null): string {
  const { emailType, ...more } = facts
  const data = {
    ...(email !== null && { emailId: email }),
    ...(emailType !== undefined && { emailType }),
    ...(to !== null && { to }),
    ...more,
  }
  return JSON.stringify({ type: event, timestamp: new Date(at).toISOString(), data })
}

/** The waits after failed tries, as Standard Webhooks advises. After the last one the message is given up. */
const waitsMs = [5000, 5 * minuteMs, 30 * minuteMs, ...[2, 5, 10, 24].map((hours) => hours * hourMs)]

/** How long to wait after this many failed tries; null to give up. */
export const waitAfterTries = (tries: number): number | null => waitsMs[tries - 1] ?? null

/** The answer of a receiver that wants no messages any more. */
export const gone = '410'

const urlMax = 2000

/** https, or http, which is sent only where private addresses are allowed. */
export function isWebhookUrl(text: string): boolean {
  if (text.length > urlMax || !/^https?:\/\/[\x21-\x7e]+$/.test(text)) return false
  const url = URL.parse(text)
  return url !== null && url.username === '' && url.password === '' && url.hash === ''
}
