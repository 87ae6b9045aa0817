/** Finds variables that look like settings of Postern and are none: a misspelt one would be ignored. */
import { type Environment, isSet } from './reader.ts'

export const settingNames = [
  'POSTERN_API_LISTEN',
  'POSTERN_BOUNCE_ADDRESS',
  'POSTERN_BOUNCE_LISTEN',
  'POSTERN_BOUNCE_TLS',
  'POSTERN_CONSOLE_LISTEN',
  'POSTERN_CONSOLE_PUBLIC',
  'POSTERN_CONSOLE_URL',
  'POSTERN_DATABASE_LISTEN_URL',
  'POSTERN_DATABASE_URL',
  'POSTERN_DNS_SERVERS',
  'POSTERN_FEEDBACK_KEYS',
  'POSTERN_FEEDBACK_LISTEN',
  'POSTERN_HOOKS_LISTEN',
  'POSTERN_HOOKS_URL',
  'POSTERN_LINKS_BASE_URL',
  'POSTERN_LINKS_LISTEN',
  'POSTERN_LOG_LEVEL',
  'POSTERN_OIDC_CLIENT_ID',
  'POSTERN_OIDC_CLIENT_SECRET',
  'POSTERN_OIDC_ISSUER',
  'POSTERN_OIDC_ROLES',
  'POSTERN_OPS_LISTEN',
  'POSTERN_QUEUE_MAX',
  'POSTERN_ROLES',
  'POSTERN_SECRET_KEYS',
  'POSTERN_SMTP_CONNECTIONS',
  'POSTERN_SMTP_NAME',
  'POSTERN_SMTP_RATE',
  'POSTERN_SMTP_URL',
  'POSTERN_TOKEN_FILE',
  'POSTERN_URL',
  'POSTERN_WEBHOOKS_PRIVATE',
]

/**
 * Variables of others: Kubernetes sets some for a service that is named postern, the client of an app has
 * two, and tests have theirs.
 */
const foreign = /^POSTERN_(?:(?:SERVICE|PORT|TEST)(?:_|$)|(?:BASE_URL|DELIVERY_KEY)$)/

/** A sentence for each. */
export const describeUnknownSettings = (env: Environment): string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith('POSTERN_') && isSet(env, name) && !foreign.test(name))
    .filter((name) => !settingNames.includes(name))
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
