/** Names a browser by its user agent, as far as people tell them apart: "Chrome on Linux". */

const browsers = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const

/** Phones first, because their agents also name the system that theirs is made of. */
const systems = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const

export function nameBrowser(agent: string): string {
  const find = (names: readonly (readonly [string, string])[]) => names.find(([part]) => agent.includes(part))?.[1]
  const [browser, system] = [find(browsers), find(systems)]
  if (browser === undefined) return agent.slice(0, 40) || 'unknown'
  return system === undefined ? browser : `${browser} on ${system}`
}
