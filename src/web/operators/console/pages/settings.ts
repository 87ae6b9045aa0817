/** Settings of the service: checks, people, tokens and sessions. */

import { hasEnded } from '../../../../domain/bearer.ts'
import { auditDays, keepDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { type Role, roles } from '../../../../domain/operator/management-token.ts'
import { listAll } from '../../../../management/operation/list-all.ts'
import type { Refusal } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import {
  age,
  button,
  facts,
  field,
  inForm,
  mark,
  newSecret,
  problem,
  section,
  select,
  table,
  tabs,
  time,
} from '../parts.ts'
import { type PageAnswer, PageRefused, toHttpStatus, type Visit } from '../visit.ts'
import { describeScope, readSlugs, type Slugs } from './app-names.ts'

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
  refusal: Refusal | null = null,
): PageAnswer => {
  const shown = pages.filter(([name]) => name === 'Checks' || (visit.may('admin') && visit.seesAll))
  const whole = html`<h1>Settings</h1>${tabs('Settings', shown, tab)}${problem(refusal)}${body}`
  const status = refusal === null ? {} : { status: toHttpStatus(refusal) }
  return { title: tab, body: whole, nav: 'settings', ...status }
}

export const showChecks = (visit: Visit): Promise<PageAnswer> => checksPage(visit, null)

async function checksPage(visit: Visit, checks: Answer<'checks.run'> | null): Promise<PageAnswer> {
  const { consoleUrl, linksUrl, queueMax, version } = visit.shell
  const mayRun = visit.may('operator') && visit.seesAll
  const run = mayRun
    ? html`<p>Asks the database, the disk, the worker and each relay. It sends no email, and takes up to 30 seconds.</p>${button('/settings/checks', 'Run the checks', { kind: 'main' })}`
    : html`<p class="soft">An operator of the whole service runs the checks.</p>`
  const about = facts([
    ['Version', version],
    ['Address of the console', consoleUrl],
    ['Address of hosted links', linksUrl ?? 'none (POSTERN_LINKS_BASE_URL)'],
    ['Queue', `at most ${formatCount(queueMax)} emails (POSTERN_QUEUE_MAX)`],
    ['Kept', `records of emails, counts and refusals ${keepDays} days, the audit ${auditDays} days`],
  ])
  return settingsPage(
    visit,
    'Checks',
    html`${checks === null ? none : renderFindings(checks)}${section('Checks', run)}${section('About', about)}`,
  )
}

function renderFindings({ ok, findings }: Answer<'checks.run'>): Html {
  const rows = findings.map((finding) => [
    html`<b>${finding.check}</b>`,
    finding.ok ? mark('good', '●', 'passed') : mark('bad', '✕', 'failed'),
    finding.detail,
  ])
  const title = ok ? 'All checks passed' : 'Some checks failed'
  return section(title, table(title, ['check', 'result', 'detail'], rows))
}

export async function runChecks(visit: Visit): Promise<PageAnswer> {
  return checksPage(visit, await visit.get('checks.run', {}))
}

export const showTokens = (visit: Visit): Promise<PageAnswer> => tokensPage(visit, {})

type NewToken = { readonly name: string; readonly token: string }

async function tokensPage(
  visit: Visit,
  { refusal = null, made }: { readonly refusal?: Refusal | null; readonly made?: NewToken },
): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'token.list', {})
  const slugs = await readSlugs(visit)
  const rows = items.map(
    ({ id, name, role, apps, createdAt, createdBy, expiresAt, revokedAt, lastUsedAt }) => {
      const ended = hasEnded({ revokedAt, expiresAt }, visit.now)
      const state = ended
        ? mark('off', '–', revokedAt === null ? 'expired' : 'revoked')
        : html`${mark('good', '●', 'active')} until ${time(expiresAt)}`
      return [
        html`<b>${name}</b><br><code class="soft">${id}</code>`,
        html`${role}<br><span class="soft">${describeScope(apps, slugs)}</span>`,
        state,
        html`${age(createdAt, visit.now)}<br><span class="soft">by ${createdBy}</span>`,
        age(lastUsedAt, visit.now),
        ended ? none : button(`/settings/tokens/${id}/revoke`, 'Revoke'),
      ]
    },
  )
  const heads = ['token', 'role', 'status', 'created', 'last used', 'change']
  const empty =
    'No token yet. A token lets a program, or a command on another machine, call the management API.'
  const form = html`<form method="post" action="/settings/tokens" class="filters">${permissionFields(visit, slugs, refusal)}<button class="main">Create a token</button></form>`
  return settingsPage(
    visit,
    'Tokens',
    html`${made === undefined ? none : newSecret(`Copy the token ${made.name} now`, 'It is shown this once; only its hash is kept. It works for 90 days.', made.token)}${section('Tokens of the management API', html`${table('Tokens', heads, rows, { empty })}${form}`)}`,
    inPermissionForm(refusal),
  )
}

const roleTexts: Readonly<Record<Role, string>> = {
  reader: 'reader: looks, changes nothing',
  operator: 'operator: keys, emails, links, branding',
  admin: 'admin: everything',
}
const roleChoices = roles.map((role) => [role, roleTexts[role]] as const)

/** Name, role and scope, for tokens and people. */
export function permissionFields({ form }: Visit, slugs: Slugs, refused: Refusal | null): Html {
  const refusal = inPermissionForm(refused)
  const apps = [
    ['', 'the whole service'],
    ...[...slugs.values()].map((slug) => [slug, slug] as const),
  ] as const
  return html`${field('name', { label: 'Name', value: form.get('name') ?? '', attributes: html`required maxlength="100"`, refusal })}
${select('role', roleChoices, { label: 'Role', value: form.get('role') ?? 'reader', refusal })}
${select('app', apps, { label: 'For', value: form.get('app') ?? '', refusal })}`
}

export const inPermissionForm = (refusal: Refusal | null): Refusal | null =>
  refusal && inForm(refusal, (field) => (field.startsWith('apps') ? 'app' : field))

export const readPermission = ({ form }: Visit) => ({
  role: roles.find((role) => role === form.get('role')) ?? 'reader',
  ...(form.get('app') ? { apps: [form.get('app') ?? ''] } : {}),
})

export async function createToken(visit: Visit): Promise<PageAnswer> {
  const body = { name: (visit.form.get('name') ?? '').trim(), ...readPermission(visit) }
  const made = await visit.call('token.create', { body })
  return tokensPage(visit, made.ok ? { made: made.value } : { refusal: made.refusal })
}

export async function revokeToken(visit: Visit): Promise<PageAnswer> {
  await visit.get('token.revoke', { params: { token: visit.params.token ?? '' } })
  return { redirect: '/settings/tokens', notice: 'token_revoked' }
}

const methods = { code: 'a one-time code', passkey: 'a passkey', oidc: 'the OpenID provider' } as const

export async function showSessions(visit: Visit): Promise<PageAnswer> {
  const sessions = await listAll(visit.get, 'session.list', {})
  const byUse = sessions.toSorted((a, b) => (a.seenAt < b.seenAt ? 1 : -1))
  const rows = byUse.map(({ id, name, method, agent, createdAt, seenAt }) => [
    html`<b>${name}</b>${id === visit.session?.id ? html` <span class="soft">(this one)</span>` : none}`,
    methods[method],
    html`${time(createdAt)}`,
    age(seenAt, visit.now),
    html`<span class="soft">${agent}</span>`,
    button(`/settings/sessions/${id}/end`, 'End'),
  ])
  const heads = ['person', 'signed in by', 'since', 'last used', 'browser', 'change']
  return settingsPage(
    visit,
    'Sessions',
    section('Sessions', table('Sessions', heads, rows, { empty: 'Nobody is signed in.' })),
  )
}

export async function endSession(visit: Visit): Promise<PageAnswer> {
  const ended = await visit.call('session.end', { params: { session: visit.params.session ?? '' } })
  if (!ended.ok && ended.refusal.code !== 'not_found') throw new PageRefused(ended.refusal)
  return { redirect: '/settings/sessions', notice: 'session_ended' }
}
