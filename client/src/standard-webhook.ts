/**
 * Standard Webhooks signatures (standardwebhooks.com, version v1): HMAC-SHA-256 over id, timestamp and
 * body. A request is valid within five minutes of its timestamp.
 */

import { PosternError } from './postern-error.ts'

const toleranceS = 300
// Shorter keys can be guessed; an empty one is known.
const secretBytesMin = 16

/**
 * @param secret `whsec_…` or `v1,whsec_…`; `|` separates several
 * @throws {PosternError} `invalid_config` if a secret is too short
 */
export async function verifyWebhook(secret: string, headers: Headers, body: string, nowMs: number): Promise<boolean> {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => headers.get(`webhook-${name}`))
  if (!id || !signatures || !/^\d+$/.test(timestamp ?? '')) return false
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceS) return false
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  // Supabase separates them by comma and space, the spec by space.
  const given = signatures
    .split(/,? +/)
    .flatMap((entry) => (entry.startsWith('v1,') ? [fromBase64(entry.slice(3))] : []))
  for (const text of secret.split('|')) {
    const bytes = fromBase64(text.replace(/^v1,/, '').replace(/^whsec_/, ''))
    if (bytes.length < secretBytesMin) {
      throw new PosternError(
        'invalid_config',
        'The secret of the webhook must be the whole text that was shown for it: whsec_… or v1,whsec_…',
      )
    }
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    // Compares in constant time.
    for (const signature of given) if (await crypto.subtle.verify('HMAC', key, signature, signed)) return true
  }
  return false
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}
