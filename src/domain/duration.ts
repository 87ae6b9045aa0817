/** Lengths of time in words: `3 s`, `12 min`, `5 h`, `9 d`. */

const units: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** In the largest unit of which there are at least two. `round` is `floor` for ages and `ceil` for waits. */
export function describeDuration(ms: number, round: 'floor' | 'ceil' = 'floor'): string {
  const [size, name] = units.find(([unit]) => ms >= 2 * unit) ?? [1000, 's']
  return `${Math.max(0, Math[round](ms / size))} ${name}`
}
