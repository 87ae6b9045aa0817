/** `Retry-After` (RFC 9110 §10.2.3). */

/** A relay may not be left alone for longer: links expire meanwhile. */
const waitMaxMs = 300_000

/** In milliseconds from `nowMs`, five minutes at most; null if there is none that can be read. */
export function readRetryAfter(header: string | null | undefined, nowMs: number): number | null {
  if (header == null) return null
  const text = header.trim()
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text.slice(0, 40)) - nowMs
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(waitMs, 0), waitMaxMs)
}
