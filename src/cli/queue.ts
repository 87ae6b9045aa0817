/** `postern queue` and `postern usage`: how much waits, and how much was sent. */
import { keepDays, retryForHours } from '../domain/bounds.ts'
import { sumCounts } from '../domain/counts.ts'
import { usageEvents } from '../domain/delivery/states.ts'
import type { Answer } from '../management/operations.ts'
import type { QueueResource } from '../management/service/queue.ts'
import { command } from './command.ts'
import { formatTimeAndAge, record, table } from './output.ts'

export const queueCommand = command({
  use: 'queue',
  about: 'show why nothing is sent, and the depth, oldest email and next attempt, by state and by app',
  examples: ['postern queue'],
  run: ({ call }) => call('queue.show', {}),
  show: (queue) => `${queue.stops.map(({ message }) => `${message}\n\n`).join('')}${describeQueue(queue)}`,
})

type Usage = { readonly today: Answer<'usage.list'> } | { readonly days: Answer<'app.usage'>['items'] }

export const usageCommand = command({
  use: 'usage [app]',
  about: 'count accepted, refused, delivered and failed emails: for one app by day, or for each app today',
  examples: ['postern usage', 'postern usage acme'],
  run: async ({ call }, [app]: readonly [string | undefined]): Promise<Usage> =>
    app === undefined
      ? { today: await call('usage.list', {}) }
      : { days: (await call('app.usage', { params: { app } })).items },
  document: (usage) => ('today' in usage ? usage.today : usage.days),
  show: (usage, [app]) => ('today' in usage ? describeToday(usage.today) : describeDays(usage.days, app ?? '')),
})

const waiting = `Each email waits until it is sent, its link expires, or ${retryForHours} hours have passed. "postern doctor" checks the relays, and whether a process is sending.`

export function describeQueue({ depth, oldestAcceptedAt, nextAttemptAt, states, apps }: QueueResource): string {
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

function describeToday({ day, items }: Answer<'usage.list'>): string {
  if (items.length === 0) return 'no app yet'
  const rows = items.map((app) => [
    app.slug,
    ...usageEvents.map((event) => app[event]),
    sumCounts(app.refused),
    app.dailyLimit,
  ])
  return `${day} (UTC)\n\n${table(['app', ...eventHeads, 'refused', 'limit'], rows)}`
}

const eventHeads = usageEvents.map((event) => (event === 'complained' ? 'spam' : event))

function describeDays(days: Answer<'app.usage'>['items'], app: string): string {
  if (days.length === 0) return `no request for ${app} in the last ${keepDays} days`
  const rows = days.map((day) => [day.day, ...usageEvents.map((event) => day[event]), sumCounts(day.refused)])
  const refusals = days.flatMap(({ day, refused }) =>
    Object.entries(refused).map(([code, count]) => [day, code, count] as const),
  )
  const counts = table(['day', ...eventHeads, 'refused'], rows)
  return refusals.length === 0 ? counts : `${counts}\n\n${table(['day', 'refused as', 'count'], refusals)}`
}
