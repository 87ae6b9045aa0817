/** Settings of the service: checks, people, tokens and sessions. */

import { activityDays, auditDays, keepDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { refusalsMax } from '../../../../domain/request/refused-request.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { age, button, contentBegin, facts, mark, section, table, tabs } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'

const pages = [
  ['Checks', '/settings'],
  ['People', '/settings/people'],
  ['Tokens', '/settings/tokens'],
  ['Sessions', '/settings/sessions'],
] as const
type SettingsTab = (typeof pages)[number][0]

export const settingsPage = (
  visit: Visit,
  tab: SettingsTab,
  body: Html,
  error: OperationError | null = null,
): PageAnswer => {
  const shown = pages.filter(([name]) => name === 'Checks' || (visit.may('admin') && visit.seesAll))
  const whole = html`<h1>Settings</h1>${tabs('Settings', shown, tab)}${contentBegin}${body}`
  const status = error === null ? {} : { status: toHttpStatus(error) }
  return { title: tab, body: whole, nav: 'settings', ...status }
}

export async function showChecks(visit: Visit): Promise<PageAnswer> {
  const { checks } = await visit.get('status.show', {})
  const { consoleUrl, linksUrl, queueMax, version } = visit.shell
  const mayRun = visit.may('operator') && visit.seesAll
  const run = mayRun
    ? html`<p>Checks the database, the disk, the worker and each relay. Sends no email; takes up to 30 seconds.</p>
${button('/settings/checks', checks === null ? 'Run the checks' : 'Run them again', { kind: 'main' })}`
    : html`<p class="soft">Only an operator of the whole service can run the checks.</p>`
  const about = facts([
    ['Version', version],
    ['Console address', consoleUrl],
    ['Hosted links address', linksUrl ?? 'none (POSTERN_LINKS_BASE_URL)'],
    ['Queue', `at most ${formatCount(queueMax)} emails (POSTERN_QUEUE_MAX)`],
    [
      'Retention',
      `email records and daily counts ${keepDays} days, charts ${activityDays} days, the newest ${refusalsMax} refusals of each app for at most ${keepDays} days, the audit ${auditDays} days`,
    ],
  ])
  return settingsPage(
    visit,
    'Checks',
    html`${checks === null ? none : renderFindings(checks, visit.now)}${section('Checks', run)}${section('About', about)}`,
  )
}

function renderFindings({ at, findings }: NonNullable<Answer<'status.show'>['checks']>, now: number): Html {
  const failedFirst = findings.toSorted((a, b) => Number(a.ok) - Number(b.ok))
  const rows = failedFirst.map((finding) => [
    html`<b>${finding.check}</b>`,
    finding.ok ? mark('quiet', 'ok') : mark('bad', 'failed'),
    finding.detail,
  ])
  const title = findings.every(({ ok }) => ok) ? 'All checks passed' : 'Some checks failed'
  return section(title, table(title, ['Check', 'Result', 'Detail'], rows), { note: age(at, now) })
}

export async function runChecks(visit: Visit): Promise<PageAnswer> {
  await visit.get('checks.run', {})
  return { redirect: '/settings' }
}
