/** `postern activity` and `postern refusal …`: what happened lately, and which requests were refused. */

import { type Command, Option } from 'commander'
import { activityDays, appMinutesKept, keepDays } from '../domain/bounds.ts'
import { sumCounts } from '../domain/counts.ts'
import { refusalsMax } from '../domain/request/refused-request.ts'
import type { ActivityCounts } from '../management/activity.ts'
import type { Answer } from '../management/operations.ts'
import type { RefusalResource } from '../management/resources.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { formatMs, formatTime, formatTimeAndAge, print, record, table } from './output.ts'
import { parsePastTime } from './time.ts'

type ActivityOptions = { app?: string; step?: 'minute' | 'hour'; since?: string; until?: string }

export function addActivityCommands(program: Command, deps: CliDeps): void {
  addActivityCommand(program, deps)
  addRefusalCommands(program, deps)
}

function addActivityCommand(program: Command, deps: CliDeps): void {
  program
    .command('activity')
    .description('count requests, outcomes and relay replies, by minute or hour')
    .option('--app <app>', `only this app; its minutes are kept for ${appMinutesKept / 60} hours`)
    .addOption(
      new Option('--step <step>', 'minute: the last hour; hour: the last 24').choices(['minute', 'hour']),
    )
    .option(
      '--since <time>',
      'start of the period: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp',
      (text) => parsePastTime(text, '--since'),
    )
    .option('--until <time>', 'end of the period (default: now)', (text) => parsePastTime(text, '--until'))
    .action(({ app, step, since, until }: ActivityOptions) =>
      withOperations(deps, async ({ call }) => {
        const query = {
          ...(app && { app }),
          ...(step && { step }),
          ...(since && { from: since }),
          ...(until && { to: until }),
        }
        const activity = await call('activity.show', { query })
        print(deps.output, activity, () => describeActivity(activity))
      }),
    )
}

function addRefusalCommands(program: Command, deps: CliDeps): void {
  const refusal = program.command('refusal').description('find out why requests were refused')
  refusal
    .command('list <app>')
    .description(`list the newest ${refusalsMax} refused requests of an app, newest first`)
    .action((app: string) => withOperations(deps, (context) => list(deps, context, app)))
  refusal
    .command('show <request>')
    .description('show one refused request by its requestId')
    .addHelpText('after', '\nExample:\n  postern refusal show req_01kgzv9m2c00ky8q2n4x7dbt6s')
    .action((request: string) =>
      withOperations(deps, async ({ call }) => {
        const found = await call('refusal.show', { params: { request } })
        print(deps.output, found, () => describeRefused(found))
      }),
    )
}

const heads = [
  'from',
  'accepted',
  'refused',
  'delivered',
  'deferred',
  'failed',
  'expired',
  'bounced',
  'complained',
  'suppressed',
  'p95',
]

const cells = (counts: ActivityCounts) => [
  counts.accepted,
  sumCounts(counts.refused),
  counts.delivered,
  counts.deferred,
  sumCounts(counts.failed),
  counts.expired,
  sumCounts(counts.bounced),
  counts.complained,
  counts.suppressed,
  formatMs(counts.p95Ms),
]

function describeActivity({ from, items, step, to, total }: Answer<'activity.show'>): string {
  const range = `from ${formatTime(from)} to ${formatTime(to)}`
  if (items.length === 0) return `nothing happened ${range}; counts are kept for ${activityDays} days`
  const rows = items.map((item) => [formatTime(item.at), ...cells(item)])
  const byCode = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([code, count]) => `${count} × ${code}`)
      .join(', ')
  const details = record([
    ['refused', byCode(total.refused)],
    ['failed', byCode(total.failed)],
    ['bounced', byCode(total.bounced)],
    ['replies', byCode(total.replies)],
    ['step', step],
  ])
  return `${table(heads, [...rows, ['total', ...cells(total)]])}\n\n${details}`
}

async function list(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const { items } = await call('refusal.list', { params: { app } })
  print(deps.output, items, () => {
    if (items.length === 0) return `no refused requests from ${app} in the last ${keepDays} days`
    const rows = items.map(({ at, status, code, issues, origin, key, requestId }) => [
      formatTime(at),
      status,
      code,
      issues.join(', ') || null,
      origin,
      key,
      requestId,
    ])
    return table(['at', 'status', 'code', 'issues', 'link', 'key', 'request'], rows)
  })
}

const describeRefused = (refusal: RefusalResource): string =>
  record([
    ['request', refusal.requestId],
    ['at', formatTimeAndAge(refusal.at)],
    ['app', refusal.app],
    ['key', refusal.key],
    ['answer', `${refusal.status} ${refusal.code}: ${refusal.message}`],
    ['issues', refusal.issues.join(', ')],
    ['link', refusal.origin === null ? '' : `${refusal.origin} (its path is not kept)`],
    ['check with', refusal.code === 'url_not_allowed' ? `postern check-link ${refusal.app} LINK` : ''],
  ])
