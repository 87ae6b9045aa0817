/** One POST to the receiver of an app, or of alerts. Its status is read, and the beginning of a refusal. */
import { signStandardWebhook } from '../../domain/signatures.ts'
import { type PublicOptions, requestPublic } from '../public-request.ts'

export type Posting = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Signed = {
  readonly id: string
  readonly text: string
  /** Each signs it: a receiver may still know the old secret. Without keys, it is not signed. */
  readonly keys: readonly Buffer[]
  readonly nowMs: number
  /** The version of Postern. */
  readonly version: string
}

/** A message with the headers of Standard Webhooks (standardwebhooks.com). */
export function newPosting(url: URL, { id, keys, nowMs, text, version }: Signed): Posting {
  const body = Buffer.from(text)
  const timestamp = String(Math.floor(nowMs / 1000))
  const signatures = keys.map((key) => signStandardWebhook({ id, timestamp, body }, key))
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Postern/${version}`,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
  return { url, headers, body }
}

/**
 * `result`: the status, or in a few words why there was none. `response`: the beginning of the body that came
 * with another status than 2xx, as it was sent.
 */
export type WebhookAnswer = { readonly result: string; readonly isTaken: boolean; readonly response: string | null }

const isTaken = (status: number): boolean => status >= 200 && status < 300

/** Never rejects. */
export async function postWebhook({ url, headers, body }: Posting, options: PublicOptions): Promise<WebhookAnswer> {
  const sent = { ...headers, 'content-length': body.length }
  const reads = (status: number) => !isTaken(status)
  const { result, status, text } = await requestPublic({ url, method: 'POST', headers: sent, body, reads }, options)
  return { result, isTaken: status !== null && isTaken(status), response: text || null }
}
