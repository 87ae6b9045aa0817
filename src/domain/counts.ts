/** Sums of counts, and counts and sizes in words. */

export const sumCounts = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((all, count) => all + count, 0)

/** With separators of thousands: `12,345`. `Intl` would load 4 MB of data for it. */
export const formatCount = (value: number): string => String(value).replace(/\B(?<!\.\d*)(?=(?:\d{3})+(?!\d))/g, ',')

/** `1 email`, `2 emails`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${formatCount(value)} ${value === 1 ? one : many}`

/** So many names are listed. */
const namedMax = 3

/** `a, b, c and 4 more`. */
export const nameAll = (names: readonly string[]): string => {
  const [named, more] = [names.slice(0, namedMax).join(', '), names.length - namedMax]
  return more > 0 ? `${named} and ${more} more` : named
}

const mebibyte = 1024 * 1024

/** `0.3 MiB`, `75.1 GiB`. */
export const describeBytes = (bytes: number): string =>
  bytes < 1024 * mebibyte ? `${(bytes / mebibyte).toFixed(1)} MiB` : `${(bytes / 1024 / mebibyte).toFixed(1)} GiB`
