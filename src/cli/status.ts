/** `postern status`, `postern audit`, `postern whoami` and `postern about`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { auditDays, keepDays } from '../domain/bounds.ts'
import { counted, describeBytes, sumCounts } from '../domain/counts.ts'
import { auditActions, auditGroups } from '../domain/operator/audit.ts'
import type { ActivityCounts } from '../management/activity.ts'
import { listAll } from '../management/list-all.ts'
import type { Answer, CallInput } from '../management/operations.ts'
import type { AuditResource } from '../management/resources.ts'
import type { AttentionKind } from '../management/service/condition.ts'
import type { StatusResource } from '../management/service/show-status.ts'
import { command, option } from './command.ts'
import type { Call, CliDeps } from './context.ts'
import { limitOption, pastOption } from './options.ts'
import { formatMs, formatTime, formatTimeAndAge, listing, record, table, UsageError } from './output.ts'
import { describeQueue } from './queue.ts'

const watchMs = 2000

export const statusCommand = command({
  use: 'status',
  about:
    'show what needs attention, counts for today and the last hour, the processes with their relays, and the queue; exit code 1 if something needs attention',
  options: [option('--watch', `show it anew every ${watchMs / 1000} s, until Ctrl+C`)],
  examples: ['postern status', 'postern status --watch'],
  async run({ call, deps }, _, { watch = false }: { watch?: boolean }) {
    if (watch) await watchStatus(call, deps)
    return call('status.show', {})
  },
  show: describeStatus,
  fault: ({ ok }) => (ok ? null : 'something needs attention; see above'),
})

/** Until nobody reads it. A service that does not answer is watched until it does. */
async function watchStatus(call: Call, { clearScreen, output, readerGone, screenRows }: CliDeps): Promise<void> {
  if (output.json) throw new UsageError('--watch is for people: leave out --json')
  while (!readerGone.aborted) {
    const text = await call('status.show', {}).then(describeStatus, (error: Error) => error.message)
    clearScreen()
    const lines = [formatTime(new Date().toISOString()), '', ...text.split('\n')]
    // The problems come first, and stay in view.
    const rows = screenRows()
    output.out(`${(rows === null ? lines : lines.slice(0, rows - 2)).join('\n')}\n`)
    await sleep(watchMs)
  }
}

function describeStatus(status: StatusResource): string {
  const { checks, today, lastHour, apps, nodes, queue } = status
  const counts = record([
    ['today (UTC)', `${today.accepted} accepted, ${today.delivered} delivered, ${today.failed} failed`],
    [
      '',
      `${counted(today.expired, 'link')} expired before the email was sent, ${counted(today.refused, 'request')} refused`,
    ],
    ['last hour', lastHour && describeHour(lastHour)],
    ['apps', apps],
    ['last checks', checks && describeChecks(checks)],
  ])
  return [describeProblems(status), counts, describeNodes(nodes), describeQueue(queue)].filter(Boolean).join('\n\n')
}

type AuditOptions = NonNullable<CallInput<'audit.list'>['query']> & { readonly limit: number }

export const auditCommand = command({
  use: 'audit',
  about: 'list the changes that operators made, newest first',
  options: [
    option('--app <app>', 'filter by app'),
    new Option('--action <action>', 'filter by action').choices(auditActions),
    new Option('--group <group>', 'filter by kind of action').choices(auditGroups),
    option('--actor <name>', 'filter by part of the name of the person or program'),
    pastOption('--since', 'only changes made then or later (2h, 3d, 2027-01-31)', 'time'),
    pastOption('--until', 'only changes made before then', 'time'),
    limitOption(),
  ],
  examples: ['postern audit --app acme --since 3d'],
  run: async ({ call }, _, { limit, ...query }: AuditOptions) => ({
    entries: await listAll(call, 'audit.list', { query }, limit),
    slugs: (await call('app.names', {})).slugs,
  }),
  document: ({ entries }) => entries,
  show: ({ entries, slugs }) =>
    listing(entries, `no changes; they are kept for ${auditDays} days`, {
      at: ({ at }) => formatTime(at),
      by: ({ actor }) => actor.name,
      action: ({ action }) => action,
      target: ({ target }) => target,
      app: ({ app }) => slugs[app ?? ''] ?? app,
      change: describeChange,
    }),
})

export const whoamiCommand = command({
  use: 'whoami',
  about: 'show the name, role and apps that commands act with',
  examples: ['postern whoami --url https://console.acme.test --token-file token.txt'],
  run: ({ call }) => call('whoami', {}),
  show: ({ name, role, apps, expiresAt, version }) =>
    record([
      ['name', name],
      ['role', role],
      ['apps', apps === null ? 'all' : apps.join(' ')],
      ['expires', formatTime(expiresAt)],
      ['service', `postern ${version}`],
    ]),
})

export const aboutCommand = command({
  use: 'about',
  about: 'show the versions, the database with its size, and the last backup',
  examples: ['postern about'],
  run: ({ call }) => call('service.show', {}),
  show: ({ database, lastBackup, node, version }) =>
    record([
      ['service', `postern ${version}, Node ${node}`],
      ['database', `${database.kind} ${database.version}, ${describeBytes(database.bytes)}, schema ${database.schema}`],
      [
        'disk',
        database.freeBytes === null
          ? null
          : `${describeBytes(database.freeBytes)} free; write-ahead log ${describeBytes(database.logBytes)}, reused`,
      ],
      ['last backup', describeBackup(lastBackup)],
    ]),
})

const describeBackup = (backup: Answer<'service.show'>['lastBackup']): string =>
  backup === null
    ? `none by "postern backup" in the last ${keepDays} days`
    : `${formatTimeAndAge(backup.at)}, ${describeBytes(backup.bytes)}`

/** The command that shows more of a condition. */
const hints: Partial<Record<AttentionKind, (app: string) => string>> = {
  store_failing: () => 'postern doctor',
  keys_missing: () => 'postern doctor',
  no_worker: () => 'postern serve',
  no_relay: () => 'postern doctor',
  relay_untried: () => 'postern doctor',
  relay_down: () => 'postern doctor',
  certificate_expires: () => 'postern doctor',
  mail_late: () => 'postern queue',
  links_expired: (app) => `postern email list --app ${app} --state expired`,
  mail_deferred: (app) => `postern email list --app ${app} --state deferred`,
  mail_failed: (app) => `postern email list --app ${app} --state failed`,
  requests_refused: (app) => (app === 'APP' ? 'postern key list APP' : `postern refusal list ${app}`),
  daily_limit_near: (app) => `postern app update ${app} --daily N`,
  mail_held: (app) => `postern app enable ${app}`,
  addresses_gone: () => 'postern email list --state failed',
  complaints_many: (app) => `postern email list --app ${app} --state complained`,
  bounces_many: (app) => `postern email list --app ${app} --state bounced`,
  reports_silent: () => 'postern report status',
  record_missing: (app) => `postern domain check ${app}`,
  key_expires: (app) => `postern key list ${app}`,
  auth_hook_refused: (app) => `postern auth-hook list ${app}`,
  webhook_failing: (app) => `postern app-webhook list ${app}`,
  setting_invalid: (app) => `postern app show ${app}`,
}

function describeChecks({ at, findings }: NonNullable<StatusResource['checks']>): string {
  const failed = findings.filter(({ ok }) => !ok).map(({ check }) => check)
  return `${formatTimeAndAge(at)}, ${failed.length === 0 ? 'all passed' : `failed: ${failed.join(', ')}`}`
}

function describeCondition({ kind, message, apps, urgent }: StatusResource['attention'][number]): string {
  const hint = hints[kind]?.(apps[0] ?? 'APP')
  return `  ${urgent ? '!' : '-'} ${message}${hint === undefined ? '' : `\n    ${hint}`}`
}

function describeProblems({ attention, earlier }: Pick<StatusResource, 'attention' | 'earlier'>): string {
  const now = attention.length === 0 ? 'All well.' : `Needs attention:\n${attention.map(describeCondition).join('\n')}`
  const lines = earlier.map(
    ({ message, from, until }) => `  - ${formatTime(from)} to ${until.slice(11, 19)}Z: ${message}`,
  )
  return lines.length === 0 ? now : `${now}\n\nEarlier problems:\n${lines.join('\n')}`
}

function describeHour(counts: ActivityCounts): string {
  const { accepted, bounced, complained, delivered, deferred, expired, failed, p50Ms, p95Ms } = counts
  const reported = sumCounts(bounced) + complained
  const back = reported === 0 ? '' : `, ${sumCounts(bounced)} bounced, ${counted(complained, 'complaint')}`
  const ends = `${accepted} accepted (test emails not counted), ${delivered} delivered, ${sumCounts(failed)} failed, ${expired} expired, ${counted(deferred, 'attempt')} deferred${back}`
  if (p50Ms === null || p95Ms === null) return ends
  return `${ends}; half of the delivered emails took at most ${formatMs(p50Ms)}, 95 % at most ${formatMs(p95Ms)} (rounded up)`
}

/** The processes, and below them each relay as each worker sees it. */
function describeNodes(nodes: StatusResource['nodes']): string {
  if (nodes.length === 0) return ''
  const processes = nodes.map(({ alive, machine, roles, seenAt, startedAt, version }) => [
    machine,
    version,
    roles.join(' '),
    formatTimeAndAge(startedAt),
    alive ? 'running' : `not reporting since ${formatTime(seenAt)}`,
  ])
  const relays = nodes
    .filter(({ alive }) => alive)
    .flatMap(({ machine, relays }) =>
      relays.map(({ name, available, connections: { busy, connecting, open, max }, reason, since, tried }) => [
        name,
        machine,
        available ? (tried ? 'available' : 'not tried yet') : `unavailable since ${formatTime(since)}: ${reason}`,
        `${open} of ${max}, ${busy} busy${connecting > 0 ? `, ${connecting} connecting` : ''}`,
      ]),
    )
  const listed = table(['process', 'version', 'roles', 'started', 'state'], processes)
  return relays.length === 0 ? listed : `${listed}\n\n${table(['relay', 'seen from', 'state', 'connections'], relays)}`
}

/** `name: "Old" → "New"`; the name and role of what was created. */
function describeChange({ before, after }: AuditResource): string {
  if (after === null) return ''
  if (before === null)
    return ['name', 'role']
      .filter((name) => after[name])
      .map((name) => `${name}: ${after[name]}`)
      .join(', ')
  return describeDifference('', before, after).join(', ')
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `limits.daily: 30 → 68`: the values that differ, also within an object. */
function describeDifference(path: string, before: unknown, after: unknown): string[] {
  if (isObject(before) && isObject(after))
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
      describeDifference(path === '' ? name : `${path}.${name}`, before[name], after[name]),
    )
  const show = (value: unknown) => (value === undefined ? 'none' : JSON.stringify(value))
  return show(before) === show(after) ? [] : [`${path}: ${show(before)} → ${show(after)}`]
}
