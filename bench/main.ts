/**
 * `npm run bench -- [NAME…]`: runs the named benchmarks, or those in `usual` (about 35 minutes). `noise`,
 * `outages` and `pressure` take `--only CASE,…`; `noise`, `outages`, `retention` and `upgrade` take
 * `--engine sqlite|postgresql`.
 */
import { parseArgs } from 'node:util'
import type { Scope } from '../test/support/temporary.ts'

export type Choice = { readonly only?: string | undefined; readonly engine?: string | undefined }
type Suite = { readonly run: (scope: Scope, choice: Choice) => Promise<void> }

const suites: Record<string, () => Promise<Suite>> = {
  accept: () => import('./accept.ts'),
  drain: () => import('./drain.ts'),
  languages: () => import('./languages.ts'),
  latency: () => import('./latency.ts'),
  capacity: () => import('./capacity.ts'),
  backlog: () => import('./backlog.ts'),
  management: () => import('./management.ts'),
  console: () => import('./console.ts'),
  fairness: () => import('./fairness.ts'),
  idle: () => import('./idle.ts'),
  nodes: () => import('./nodes.ts'),
  noise: () => import('./noise.ts'),
  outages: () => import('./outages.ts'),
  relays: () => import('./relays.ts'),
  reports: () => import('./reports.ts'),
  retention: () => import('./retention.ts'),
  signing: () => import('./signing.ts'),
  submission: () => import('./submission.ts'),
  upgrade: () => import('./upgrade.ts'),
  pressure: () => import('./pressure.ts'),
  profile: () => import('./profile.ts'),
  peers: () => import('./peers.ts'),
}

const usual = [
  'accept',
  'peers',
  'drain',
  'latency',
  'capacity',
  'backlog',
  'management',
  'console',
  'fairness',
  'idle',
  'nodes',
  'relays',
]

const { positionals: names, values: choice } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, engine: { type: 'string' } },
})
const unknown = names.find((name) => !(name in suites))
if (unknown !== undefined) {
  console.error(`bench: unknown benchmark "${unknown}". Benchmarks: ${Object.keys(suites).join(', ')}`)
  process.exit(2)
}
for (const name of names.length === 0 ? usual : names) {
  console.log(`\n# ${name}`)
  const ends: (() => unknown)[] = []
  const suite = await suites[name]?.()
  try {
    await suite?.run({ after: (end) => void ends.push(end) }, choice)
  } finally {
    for (const end of ends) await end()
  }
}
