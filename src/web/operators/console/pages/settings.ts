/** Settings of the service: checks, people, tokens, sessions, and what it is. */

import { activityDays, auditDays, keepDays } from '../../../../domain/bounds.ts'
import { describeBytes, formatCount } from '../../../../domain/counts.ts'
import { refusalsMax } from '../../../../domain/request/refused-request.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { age, button, contentBegin, copied, facts, mark, section, table, tabs, time } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'

const pages = [
  ['Checks', '/settings'],
  ['Transports', '/settings/transports'],
  ['People', '/settings/people'],
  ['Tokens', '/settings/tokens'],
  ['Sessions', '/settings/sessions'],
  ['About', '/settings/about'],
] as const
type SettingsTab = (typeof pages)[number][0]

export const settingsPage = (
  visit: Visit,
  tab: SettingsTab,
  body: Html,
  error: OperationError | null = null,
): PageAnswer => {
  const ofService: readonly SettingsTab[] = ['About', 'Transports']
  const isOpen = (name: SettingsTab) =>
    name === 'Checks' || (visit.seesAll && (ofService.includes(name) || visit.may('admin')))
  const shown = pages.filter(([name]) => isOpen(name))
  const whole = html`<h1>Settings</h1>${tabs('Settings', shown, tab)}${contentBegin}${body}`
  const status = error === null ? {} : { status: toHttpStatus(error) }
  return { title: tab, body: whole, nav: 'settings', ...status }
}

export async function showChecks(visit: Visit): Promise<PageAnswer> {
  const { checks } = await visit.get('status.show', {})
  const mayRun = visit.may('operator') && visit.seesAll
  const run = mayRun
    ? html`<p>Checks the database, the disk, the worker and each relay. Sends no email; takes up to 30 seconds.</p>
${button('/settings/checks', checks === null ? 'Run the checks' : 'Run them again', { kind: 'main' })}`
    : html`<p class="soft">Only an operator of the whole service can run the checks.</p>`
  return settingsPage(
    visit,
    'Checks',
    html`${checks === null ? none : renderFindings(checks, visit.now)}${section('Checks', run)}`,
  )
}

/** Documents of the package, by what an operator looks for. */
const documents = [
  ['docs/backup.md', 'backup and restore'],
  ['docs/upgrade.md', 'upgrades'],
  ['docs/postgresql.md', 'moving from SQLite to PostgreSQL'],
  ['docs/configuration.md', 'every setting'],
  ['docs/observability.md', 'alerts, metrics and logs'],
] as const

export async function showAbout(visit: Visit): Promise<PageAnswer> {
  const { database, lastBackup, node, version } = await visit.get('service.show', {})
  const { consoleUrl, linksUrl, queueMax } = visit.shell
  const isSqlite = database.kind === 'SQLite'
  const backup =
    lastBackup === null
      ? html`none by <code>postern backup</code> in the last ${keepDays} days${isSqlite ? none : html` <span class="soft">(on PostgreSQL, its own tools make backups)</span>`}`
      : html`${time(lastBackup.at)} <span class="soft">(${age(lastBackup.at, visit.now)}, ${describeBytes(lastBackup.bytes)})</span>`
  const about = facts([
    ['Postern', `${version}, on Node ${node}`],
    ['Database', `${database.kind} ${database.version}, ${describeBytes(database.bytes)}`],
    [
      'Disk',
      database.freeBytes === null
        ? null
        : html`${describeBytes(database.freeBytes)} free; the write-ahead log beside the database has ${describeBytes(database.logBytes)} and is reused`,
    ],
    ['Schema', String(database.schema)],
    ['Last backup', backup],
    ['Console address', consoleUrl],
    ['Hosted links address', linksUrl ?? 'none (POSTERN_LINKS_BASE_URL)'],
    ['Queue', `at most ${formatCount(queueMax)} emails (POSTERN_QUEUE_MAX)`],
    [
      'Retention',
      `email records${isSqlite ? ' and' : ` ${keepDays} to ${keepDays + 2} days,`} daily counts ${keepDays} days, charts ${activityDays} days, the newest ${refusalsMax} refusals of each app for at most ${keepDays} days, the audit ${auditDays} days`,
    ],
  ])
  const command = '(umask 077; postern backup - > backup-$(date +%F).db)'
  const howTo = isSqlite
    ? html`<p>${lastBackup === null ? mark('wait', 'no backup') : none} While the service runs: ${copied(command)}</p>`
    : html`<p>Use <code>pg_dump</code>, or the backups of your provider.</p>`
  const listed = html`<ul>${documents.map(([file, what]) => html`<li><code>${file}</code> <span class="soft">${what}</span></li>`)}</ul>`
  return settingsPage(
    visit,
    'About',
    html`${section('This service', about)}${section('Make a backup', howTo)}${section('Documents', listed)}`,
  )
}

function renderFindings({ at, findings }: NonNullable<Answer<'status.show'>['checks']>, now: number): Html {
  const failedFirst = findings.toSorted((a, b) => Number(a.ok) - Number(b.ok))
  const isWhole = findings.every(({ isSkipped }) => !isSkipped)
  const passed = isWhole ? 'All checks passed' : 'All checks passed, and some were left out'
  const title = findings.every(({ ok }) => ok) ? passed : 'Some checks failed'
  return section(title, findingsTable(title, failedFirst), { note: age(at, now) })
}

export function findingsTable(title: string, findings: Answer<'checks.run'>['findings']): Html {
  const rows = findings.map(({ check, detail, isSkipped, ok }) => [
    html`<b>${check}</b>`,
    isSkipped ? mark('off', 'not checked') : ok ? mark('quiet', 'ok') : mark('bad', 'failed'),
    detail,
  ])
  return table(title, ['Check', 'Result', 'Detail'], rows)
}

/** The result is on the page that the button was on. */
export async function runChecks(visit: Visit): Promise<PageAnswer> {
  await visit.get('checks.run', {})
  const back = visit.form.get('back') ?? ''
  return { redirect: ['/', '/delivery'].includes(back) ? back : '/settings' }
}

/** The last checks of the relays; nothing before the first ones. */
export function renderRelayChecks(checks: Answer<'status.show'>['checks'], now: number): Html {
  const lines = (checks?.findings ?? [])
    .filter(({ check }) => check.startsWith('relay'))
    .map(
      ({ check, detail, ok }) => html`<li>${mark(ok ? 'quiet' : 'bad', ok ? 'ok' : 'failed')} ${check}: ${detail}</li>`,
    )
  return checks === null || lines.length === 0
    ? none
    : html`<p class="soft">Checked ${age(checks.at, now)}:</p><ul>${lines}</ul>`
}
