/**
 * Signatures of calls: HMAC-SHA256 under a shared secret, over the time and the raw body. They are valid for
 * five minutes before and after that time. Headers are bounded before they are taken apart.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The headers of a call, in small letters. */
export type CallHeaders = Readonly<Record<string, string | undefined>>

export type SignedCall = { readonly headers: CallHeaders; readonly body: Uint8Array; readonly nowMs: number }

const toleranceSeconds = 300
const headerCharactersMax = 1024
const unixSeconds = /^\d{1,12}$/
/** Without full stops, so that no part of a signed body can be presented as the id. */
const webhookId = /^[\w-]{1,128}$/

/**
 * Standard Webhooks (standardwebhooks.com): `v1,<base64>` over `id.timestamp.body`. Several signatures are
 * separated by a space, or as Supabase does it by a comma and a space; one of them must fit.
 * @param prefix that of the names of the headers
 */
export function verifyStandardWebhook(
  { headers, body, nowMs }: SignedCall,
  key: Uint8Array,
  prefix: 'webhook' | 'svix' = 'webhook',
): boolean {
  const id = headers[`${prefix}-id`] ?? ''
  const timestamp = headers[`${prefix}-timestamp`] ?? ''
  const signatures = headers[`${prefix}-signature`] ?? ''
  if (signatures.length > headerCharactersMax || !webhookId.test(id) || !isRecent(timestamp, nowMs)) return false
  const given = signatures.split(' ').map((signature) => signature.replace(/,$/, ''))
  return includes(given, signStandardWebhook({ id, timestamp, body }, key))
}

/** The signature of Standard Webhooks, as it is in the header. `timestamp` is in seconds since 1970. */
export const signStandardWebhook = (
  { id, timestamp, body }: { readonly id: string; readonly timestamp: string; readonly body: Uint8Array },
  key: Uint8Array,
): string => `v1,${sign(key, `${id}.${timestamp}.`, body, 'base64')}`

/** The header of Zitadel: `t=<unix seconds>,v1=<hex>[,v1=<hex>]`, over `t.body`. One signature must fit. */
export function verifyZitadel({ headers, body, nowMs }: SignedCall, key: Uint8Array): boolean {
  const header = headers['zitadel-signature'] ?? ''
  if (header.length > headerCharactersMax) return false
  const [time = '', ...given] = header.split(',')
  const timestamp = time.startsWith('t=') ? time.slice(2) : ''
  if (!isRecent(timestamp, nowMs)) return false
  return includes(given, `v1=${sign(key, `${timestamp}.`, body, 'hex')}`)
}

const isRecent = (timestamp: string, nowMs: number): boolean =>
  unixSeconds.test(timestamp) && Math.abs(Math.floor(nowMs / 1000) - Number(timestamp)) <= toleranceSeconds

const sign = (key: Uint8Array, head: string, body: Uint8Array, encoding: 'base64' | 'hex'): string =>
  createHmac('sha256', key).update(head).update(body).digest(encoding)

/** Whether one of the texts is the expected one, in a time that tells nothing of where they differ. */
export function includes(given: readonly string[], expected: string): boolean {
  const wanted = Buffer.from(expected)
  return given
    .map((text) => Buffer.from(text))
    .some((bytes) => bytes.length === wanted.length && timingSafeEqual(bytes, wanted))
}
