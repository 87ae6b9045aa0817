/** `postern queue` and `postern usage`: how much waits, and how much was sent. */
import type { Command } from 'commander'
import { findApp } from '../management/find-app.ts'
import { presentQueue, presentUsage, usageEvents } from '../management/present.ts'
import type { Store } from '../store/store.ts'
import { type CliDeps, withStore } from './context.ts'
import { formatTimeAndAge, print, record, table, unwrap } from './output.ts'

export function addQueueCommands(program: Command, deps: CliDeps): void {
  program
    .command('queue')
    .description('show depth, oldest email and next attempt, by state and by app')
    .action(() => withStore(deps, (store) => queue(deps, store)))
  program
    .command('usage <app>')
    .description('count accepted, refused, delivered and failed emails, by day')
    .action((app: string) => withStore(deps, (store) => usage(deps, store, app)))
}

async function queue(deps: CliDeps, store: Store): Promise<void> {
  const summary = await store.queueSummary()
  const apps = new Map((await store.listApps()).map((app) => [app.id, app]))
  const nowMs = store.now()
  const document = presentQueue(summary, { nowMs, slugOf: (app) => apps.get(app)?.slug ?? null })
  print(deps.output, document, () => {
    if (summary.depth === 0) return 'the queue is empty'
    const totals = record([
      ['depth', summary.depth],
      ['oldest', formatTimeAndAge(summary.oldestAcceptedAt, nowMs)],
      ['next attempt', formatTimeAndAge(summary.nextAttemptAt, nowMs)],
      ...Object.entries(document.states),
    ])
    const isHeld = (id: (typeof summary.counts)[number]['app']) => apps.get(id)?.status === 'disabled'
    const rows = summary.counts.map(({ app, state, count }) => [
      apps.get(app)?.slug ?? app,
      state,
      count,
      isHeld(app) ? 'held: the app is disabled' : null,
    ])
    const waiting =
      'Each email waits until it is sent, its link expires, or 48 hours are over. "postern doctor" checks the relays, and whether a process sends.'
    return `${totals}\n\n${table(['app', 'state', 'emails', 'note'], rows)}\n\n${waiting}`
  })
}

async function usage(deps: CliDeps, store: Store, name: string): Promise<void> {
  const app = unwrap(await findApp(store, name))
  const days = await store.usage(app.id)
  print(deps.output, days.map(presentUsage), () => {
    if (days.length === 0) return `no request for ${app.slug} in the last 30 days`
    const events = [...new Set(days.flatMap(({ counts }) => Object.keys(counts)))]
    const refusals = events.filter((event) => !usageEvents.includes(event)).sort()
    const columns = [...usageEvents, ...refusals]
    return table(
      ['day', ...columns],
      days.map(({ day, counts }) => [day, ...columns.map((event) => counts[event] ?? 0)]),
    )
  })
}
