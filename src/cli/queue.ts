/** `postern queue` and `postern usage`: how much waits, and how much went through. */
import type { Command } from 'commander'
import type { Store } from '../store/store.ts'
import { type CliDeps, requireApp, withStore } from './context.ts'
import { age, isoOrNull, moment, print, record, table } from './output.ts'

export function addQueueCommands(program: Command, deps: CliDeps): void {
  program
    .command('queue')
    .description('depth, oldest email and next attempt, by state and by app')
    .action(() => withStore(deps, (store) => queue(deps, store)))
  program
    .command('usage <app>')
    .description('accepted, refused, delivered and failed, by day')
    .action((app: string) => withStore(deps, (store) => usage(deps, store, app)))
}

async function queue(deps: CliDeps, store: Store): Promise<void> {
  const { depth, oldestAcceptedAt, nextAttemptAt, counts } = await store.queueSummary()
  const apps = new Map((await store.listApps()).map((app) => [app.id, app]))
  const oldestAgeSeconds =
    oldestAcceptedAt === null ? 0 : Math.max(0, Math.floor((store.now() - oldestAcceptedAt) / 1000))
  const total = (state: string) =>
    counts.filter((count) => count.state === state).reduce((sum, { count }) => sum + count, 0)
  const states = { queued: total('queued'), sending: total('sending'), deferred: total('deferred') }
  const document = {
    depth,
    oldestAcceptedAt: isoOrNull(oldestAcceptedAt),
    oldestAgeSeconds,
    nextAttemptAt: isoOrNull(nextAttemptAt),
    states,
    apps: counts.map(({ app, state, count }) => ({ app, slug: apps.get(app)?.slug ?? null, state, count })),
  }
  print(deps.output, document, () => {
    if (depth === 0) return 'the queue is empty'
    const summary = record([
      ['depth', depth],
      [
        'oldest',
        oldestAcceptedAt === null
          ? null
          : `${moment(oldestAcceptedAt)} (${age(store.now() - oldestAcceptedAt)} ago)`,
      ],
      ['next retry', moment(nextAttemptAt)],
      ...Object.entries(states),
    ])
    const held = (id: (typeof counts)[number]['app']) =>
      apps.get(id)?.status === 'disabled' ? 'held: disabled' : null
    const rows = counts.map(({ app, state, count }) => [apps.get(app)?.slug ?? app, state, count, held(app)])
    return `${summary}\n\n${table(['app', 'state', 'emails', 'note'], rows)}`
  })
}

const outcomes = ['accepted', 'delivered', 'failed', 'expired', 'cancelled']

async function usage(deps: CliDeps, store: Store, name: string): Promise<void> {
  const app = await requireApp(store, name)
  const days = await store.usage(app.id)
  const document = days.map(({ day, counts }) => {
    const refused = Object.fromEntries(Object.entries(counts).filter(([what]) => !outcomes.includes(what)))
    return { day, ...Object.fromEntries(outcomes.map((what) => [what, counts[what] ?? 0])), refused }
  })
  print(deps.output, document, () => {
    if (days.length === 0) return `no request for ${app.slug} in the last 30 days`
    const reasons = [...new Set(days.flatMap(({ counts }) => Object.keys(counts)))].filter(
      (what) => !outcomes.includes(what),
    )
    const columns = [...outcomes, ...reasons.sort()]
    return table(
      ['day', ...columns],
      days.map(({ day, counts }) => [day, ...columns.map((what) => counts[what] ?? 0)]),
    )
  })
}
