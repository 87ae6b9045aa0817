/** Signed requests are refused by a server whose clock differs, and say so badly. */

const differenceMaxMs = 60_000

/**
 * A clause to add to the reason of a refusal, or nothing.
 * @param date the `Date` header of the answer
 */
export function describeClockDifference(date: string | null, nowMs: number): string {
  const aheadMs = date === null ? Number.NaN : nowMs - Date.parse(date.slice(0, 40))
  if (Number.isNaN(aheadMs) || Math.abs(aheadMs) <= differenceMaxMs) return ''
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  return `; the clock of this machine is ${minutes} min ${aheadMs > 0 ? 'ahead' : 'behind'}`
}
