/** `postern activity` and `postern refusal …`: what happened lately, and which requests were refused. */
import { Option } from 'commander'
import { activityDays, appMinutesKept, keepDays } from '../domain/bounds.ts'
import { sumCounts } from '../domain/counts.ts'
import { adviseOnIssue } from '../domain/request/issue-advice.ts'
import { refusalsMax } from '../domain/request/refused-request.ts'
import type { ActivityCounts } from '../management/activity.ts'
import { listAll } from '../management/list-all.ts'
import type { CallInput } from '../management/operations.ts'
import { type CommandGroup, command, given, option } from './command.ts'
import { limitOption, pastOption } from './options.ts'
import { type Columns, formatMs, formatTime, formatTimeAndAge, listing, record } from './output.ts'

type ActivityOptions = { app?: string; step?: 'minute' | 'hour'; since?: string; until?: string }

export const activityCommand = command({
  use: 'activity',
  about: 'count requests, outcomes and relay replies, by minute or hour',
  options: [
    option('--app <app>', `only this app; its minutes are kept for ${appMinutesKept / 60} hours`),
    new Option('--step <step>', 'minute: the last hour; hour: the last 24').choices(['minute', 'hour']),
    pastOption('--since', 'start of the period: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp', 'time'),
    pastOption('--until', 'end of the period (default: now)', 'time'),
  ],
  examples: ['postern activity --app acme --since 2h'],
  run: ({ call }, _, { app, since: from, step, until: to }: ActivityOptions) =>
    call('activity.show', { query: given({ app, step, from, to }) }),
  show({ from, items, step, to, total }) {
    const range = `from ${formatTime(from)} to ${formatTime(to)}`
    if (items.length === 0) return `nothing happened ${range}; counts are kept for ${activityDays} days`
    const rows = [
      ...items.map(({ at, ...counts }) => ({ ...counts, from: shortTime(at) })),
      { ...total, from: 'total' },
    ]
    const details = record([
      ['refused', byCode(total.refused)],
      ['failed', byCode(total.failed)],
      ['bounced', byCode(total.bounced)],
      ['suppressed', total.suppressed || null],
      ['replies', byCode(total.replies)],
      ['step', step],
    ])
    return `${listing(rows, '', columns)}\n\n${details}`
  },
})

/** `05-15 09:02Z`: counts are kept for days, and have no seconds. */
const shortTime = (iso: string): string => `${iso.slice(5, 16).replace('T', ' ')}Z`

const columns: Columns<ActivityCounts & { readonly from: string | null }> = {
  from: ({ from }) => from,
  accepted: ({ accepted }) => accepted,
  refused: ({ refused }) => sumCounts(refused),
  delivered: ({ delivered }) => delivered,
  deferred: ({ deferred }) => deferred,
  failed: ({ failed }) => sumCounts(failed),
  expired: ({ expired }) => expired,
  bounced: ({ bounced }) => sumCounts(bounced),
  spam: ({ complained }) => complained,
  p95: ({ p95Ms }) => formatMs(p95Ms),
}

const byCode = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([code, count]) => `${count} × ${code}`)
    .join(', ')

type RefusalOptions = { app?: string; code?: string; key?: string; to?: string; limit: number; test?: true }

const listRefusals = command({
  use: 'list [app]',
  about: `list refused requests, newest first: the newest ${refusalsMax} of each app, and ${refusalsMax} that were over a limit`,
  options: [
    option('--app <app>', 'filter by app'),
    option('--code <code>', 'filter by the code of the refusal, e.g. url_not_allowed'),
    option('--key <key>', 'filter by the id of the key'),
    option('--to <address>', 'filter by recipient'),
    option('--test', 'requests with test keys, which are left out otherwise'),
    limitOption(),
  ],
  examples: ['postern refusal list acme', 'postern refusal list --to ada@example.com'],
  async run(
    { call },
    [named]: readonly [string | undefined],
    { app = named, code, key, limit, test, to }: RefusalOptions,
  ) {
    const recipient = to === undefined ? undefined : (await call('email.find', { body: { to, limit: 1 } })).recipient
    const query = given({ app, code, key, recipient, test: test && 'true' }) as NonNullable<
      CallInput<'refusal.list'>['query']
    >
    const refusals = await listAll(call, 'refusal.list', { query }, limit)
    return { refusals, slugs: (await call('app.names', {})).slugs }
  },
  document: ({ refusals }) => refusals,
  show: ({ refusals, slugs }) =>
    listing(refusals, `no refused requests in the last ${keepDays} days`, {
      at: ({ at }) => formatTime(at),
      app: ({ app }) => slugs[app] ?? app,
      code: ({ code }) => code,
      issues: ({ issues }) => issues.join(', ') || null,
      link: ({ origin }) => origin,
      request: ({ requestId }) => requestId,
    }),
})

function describeIssue(issue: string): string {
  const advice = adviseOnIssue(issue)
  return advice === null ? issue : `${issue} (to fix it: ${advice})`
}

const showRefusal = command({
  use: 'show <request>',
  about: 'show one refused request by its requestId',
  examples: ['postern refusal show req_01kgzv9m2c00ky8q2n4x7dbt6s'],
  run: ({ call }, [request]) => call('refusal.show', { params: { request } }),
  show: (refusal) =>
    record([
      ['request', refusal.requestId],
      ['at', formatTimeAndAge(refusal.at)],
      ['app', refusal.app],
      ['key', refusal.key],
      ['response', `${refusal.status} ${refusal.code}: ${refusal.message}`],
      ...refusal.issues.map((issue) => ['issue', describeIssue(issue)] as const),
      ['link', refusal.origin === null ? '' : `${refusal.origin} (its path is not kept)`],
      ['check with', refusal.code === 'url_not_allowed' ? `postern check-link ${refusal.app} LINK` : ''],
    ]),
})

export const refusalCommands: CommandGroup = {
  name: 'refusal',
  about: 'find out why requests were refused',
  commands: [listRefusals, showRefusal],
}
