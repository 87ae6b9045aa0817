/** Lengths of time in words: `3 s`, `12 min`, `5 h`, `9 d`. */

/** In milliseconds. */
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

const units: readonly (readonly [ms: number, name: string])[] = [
  [dayMs, 'd'],
  [hourMs, 'h'],
  [minuteMs, 'min'],
  [1000, 's'],
]

/** In the largest unit of which there are at least two. `round` is `ceil` for waits. */
export function describeDuration(ms: number, round: 'round' | 'ceil' = 'round'): string {
  const [size, name] = units.find(([unit]) => ms >= 2 * unit) ?? [1000, 's']
  return `${Math.max(0, Math[round](ms / size))} ${name}`
}

/** A short time with its milliseconds or tenths of a second: `84 ms`, `2.5 s`, `45 s`, `3 min`. */
export function describeShortTime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${Math.round(ms / 100) / 10} s`
  return describeDuration(ms)
}
