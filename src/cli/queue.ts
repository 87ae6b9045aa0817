/** `postern queue` and `postern usage`: how much waits, and how much was sent. */

import type { Command } from 'commander'
import { keepDays, retryForHours } from '../domain/bounds.ts'
import { sumCounts } from '../domain/counts.ts'
import { usageEvents } from '../domain/delivery/states.ts'
import type { QueueResource } from '../management/service/queue.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { formatTimeAndAge, print, record, table } from './output.ts'

export function addQueueCommands(program: Command, deps: CliDeps): void {
  program
    .command('queue')
    .description(
      'show why nothing is sent, and the depth, oldest email and next attempt, by state and by app',
    )
    .action(() =>
      withOperations(deps, async ({ call }) => {
        const queue = await call('queue.show', {})
        const stops = queue.stops.map(({ message }) => `${message}\n\n`).join('')
        print(deps.output, queue, () => `${stops}${describeQueue(queue)}`)
      }),
    )
  program
    .command('usage [app]')
    .description(
      'count accepted, refused, delivered and failed emails: for one app by day, or for each app today',
    )
    .action((app: string | undefined) =>
      withOperations(deps, (context) =>
        app === undefined ? showUsageToday(deps, context) : showUsage(deps, context, app),
      ),
    )
}

const waiting = `Each email waits until it is sent, its link expires, or ${retryForHours} hours have passed. "postern doctor" checks the relays, and whether a process is sending.`

export function describeQueue({
  depth,
  oldestAcceptedAt,
  nextAttemptAt,
  states,
  apps,
}: QueueResource): string {
  if (depth === 0) return 'the queue is empty'
  const totals = record([
    ['depth', depth],
    ['oldest', formatTimeAndAge(oldestAcceptedAt)],
    ['next attempt', formatTimeAndAge(nextAttemptAt)],
    ...Object.entries(states),
  ])
  const rows = apps.map(({ app, slug, queued, sending, deferred, held }) => [
    slug ?? app,
    queued,
    sending,
    deferred,
    held ? 'held: the app is disabled or suspended' : null,
  ])
  return `${totals}\n\n${table(['app', 'queued', 'sending', 'deferred', 'note'], rows)}\n\n${waiting}`
}

async function showUsageToday(deps: CliDeps, { call }: CommandContext): Promise<void> {
  const today = await call('usage.list', {})
  print(deps.output, today, () => {
    if (today.items.length === 0) return 'no app yet'
    const rows = today.items.map((app) => [
      app.slug,
      ...usageEvents.map((event) => app[event]),
      sumCounts(app.refused),
      app.dailyLimit,
    ])
    return table([`app (${today.day})`, ...usageEvents, 'refused', 'daily limit'], rows)
  })
}

async function showUsage(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const { items: days } = await call('app.usage', { params: { app } })
  print(deps.output, days, () => {
    if (days.length === 0) return `no request for ${app} in the last ${keepDays} days`
    const refusals = [...new Set(days.flatMap(({ refused }) => Object.keys(refused)))].sort()
    return table(
      ['day', ...usageEvents, ...refusals],
      days.map((day) => [
        day.day,
        ...usageEvents.map((event) => day[event]),
        ...refusals.map((event) => day.refused[event] ?? 0),
      ]),
    )
  })
}
