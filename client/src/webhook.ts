/**
 * Postern's webhooks: verifies a message to the app, and reads it. Postern may send a message more than once,
 * with the same `id`.
 */
import type { EmailType } from './email.ts'
import { PosternError } from './postern-error.ts'
import { verifyWebhook } from './standard-webhook.ts'

/** A message about an email. `to` is missing if the report of a mail server did not name the recipient. */
export type WebhookEvent = {
  /** The same each time this message is sent. */
  readonly id: string
  /** When it happened, in ISO 8601. */
  readonly timestamp: string
} & (
  | {
      /** A mail server behind the relay gave the email up. */
      readonly type: 'email.bounced'
      readonly data: AboutEmail & {
        /** The subject of the server's reply. New ones may come. */
        readonly cause:
          | 'no_mailbox'
          | 'mailbox_full'
          | 'policy'
          | 'unreachable'
          | 'relay_suppressed'
          | 'expired_at_relay'
          | 'unknown'
          | (string & {})
        /** No later attempt would succeed. */
        readonly permanent: boolean
      }
    }
  /** The relay refused the email, or no attempt succeeded. */
  | { readonly type: 'email.failed'; readonly data: AboutEmail & { readonly cause: string } }
  /** The email was not sent, because its recipient is suppressed. */
  | { readonly type: 'email.suppressed'; readonly data: AboutEmail & { readonly cause?: string } }
  /** The recipient reported the email as spam. */
  | { readonly type: 'email.complained'; readonly data: AboutEmail }
  /** An operator tries the receiver. */
  | { readonly type: 'webhook.test'; readonly data: Readonly<Record<string, never>> }
)

type AboutEmail = {
  /** The `Email-Id` of the answer that accepted it. */
  readonly emailId: string
  readonly emailType: EmailType
  readonly to?: string
  /** Until when Postern sends no such email to the recipient, in ISO 8601. */
  readonly suppressedUntil?: string
}

/** More than any message has. */
const bytesMax = 16_384

/**
 * The message of a request, whose signature is checked. Answer with 2xx once it is stored; an answer of
 * another kind is repeated, for two days.
 * @param secret `whsec_…`, as Postern showed it; during a rotation several, separated by `|`
 * @throws {PosternError} `invalid_webhook` if the signature is not valid, or the request is too old; answer
 * it with 401. `invalid_config` if the secret is too short.
 */
export async function readWebhook(secret: string, request: Request): Promise<WebhookEvent> {
  const body = await readText(request)
  if (body === null || !(await verifyWebhook(secret, request.headers, body, Date.now())))
    throw new PosternError('invalid_webhook', 'The signature is not valid, or the request is too old.')
  return { ...JSON.parse(body), id: request.headers.get('webhook-id') ?? '' } as WebhookEvent
}

/** Null if there is more than any message has. */
async function readText({ body }: Request): Promise<string | null> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let [text, length] = ['', 0]
  for (const reader = body.getReader(); ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    length += value.length
    if (length > bytesMax) {
      await reader.cancel()
      return null
    }
    text += decoder.decode(value, { stream: true })
  }
}
