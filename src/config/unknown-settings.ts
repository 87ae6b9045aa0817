/** Finds variables that look like settings of Postern and are none: a misspelt one would be ignored. */
import { type Environment, isSet } from './reader.ts'
import { settingNames } from './settings.ts'

/**
 * Variables of others: Kubernetes sets some for a service that is named postern, the client of an app has
 * two, and tests have theirs.
 */
const foreign = /^POSTERN_(?:(?:SERVICE|PORT|TEST)(?:_|$)|(?:BASE_URL|DELIVERY_KEY)$)/

/** A sentence for each. */
export const describeUnknownSettings = (env: Environment): string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith('POSTERN_') && isSet(env, name) && !foreign.test(name))
    .filter((name) => !settingNames.some((known) => known === name))
    .map((name) => `${name} is not a setting, and is ignored: did you mean ${findNearest(name)}?`)

/** The name that shares the longest beginning and end. */
const findNearest = (name: string): string =>
  settingNames.toSorted((a, b) => countShared(b, name) - countShared(a, name))[0] ?? ''

function countShared(a: string, b: string): number {
  const shortest = Math.min(a.length, b.length)
  let [begin, end] = [0, 0]
  while (begin < shortest && a[begin] === b[begin]) begin++
  while (end < shortest - begin && a.at(-1 - end) === b.at(-1 - end)) end++
  return begin + end
}
