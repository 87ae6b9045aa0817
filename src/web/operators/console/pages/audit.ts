/** The audit: who changed what and when, as sentences, with the values that differ. */
import { auditDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { dayMs } from '../../../../domain/duration.ts'
import type { AuditGroup } from '../../../../domain/operator/audit.ts'
import { parseTimestamp } from '../../../../domain/request/timestamp.ts'
import { listAll } from '../../../../management/list-all.ts'
import type { AppResource, AuditResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm } from '../form.ts'
import { button, older, readFilters, section, tabs } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { readSlugs, type Slugs } from './app-names.ts'
import { renderChanges } from './audit-changes.ts'
import { describeAction } from './audit-sentences.ts'
import { exportForm } from './export.ts'

const groups: readonly (readonly [group: AuditGroup | '', label: string])[] = [
  ['', 'Everything'],
  ['settings', 'Apps and keys'],
  ['access', 'People and tokens'],
  ['emails', 'Emails'],
  ['sign_ins', 'Sign-ins'],
  ['searches', 'Searches and checks'],
]

const filterForm = newForm('audit', {
  app: { label: 'App' },
  actor: { label: 'By', attributes: html`placeholder="a part of the name"` },
  from: { label: 'From (UTC)', faults: ['since'], attributes: html`type="date"` },
  to: { label: 'To (UTC)', faults: ['until'], attributes: html`type="date"` },
})

const filterNames = ['app', 'actor', 'from', 'to', 'group'] as const
type Filters = Readonly<Partial<Record<(typeof filterNames)[number], string>>>

/** The last day is a part of the time that is asked for. */
const toQuery = ({ app, actor, from, to, group }: Filters) => ({
  ...(app && { app }),
  ...(actor && { actor }),
  ...(group && { group: group as AuditGroup }),
  ...(from && { since: toTime(from, 0) }),
  ...(to && { until: toTime(to, dayMs) }),
})

/** The text itself if it is no date: the operation says what is wrong with it. */
function toTime(date: string, afterMs: number): string {
  const begin = parseTimestamp(`${date}T00:00:00Z`, '')
  return begin.ok ? new Date(begin.value + afterMs).toISOString() : date
}

export async function showAudit(visit: Visit): Promise<PageAnswer> {
  const filters: Filters = readFilters(visit.query, filterNames)
  const cursor = visit.query.get('cursor')
  const slugs = await readSlugs(visit)
  const names = new Map([...slugs, ...(await readPeople(visit))])
  const query = { ...toQuery(filters), ...(cursor !== null && { cursor }) }
  const list = await visit.call('audit.list', { query })
  const needsApp = !list.ok && list.error.code === 'not_permitted'
  if (!list.ok && !needsApp && list.error.code !== 'invalid_request') throw new PageFailed(list.error)
  const { items, next } = list.ok ? list.value : { items: [], next: null }
  const known = { names, apps: await readChangedApps(visit, items) }
  const address = (more: Readonly<Record<string, string>>) => {
    const given = Object.entries({ ...filters, ...more }).filter(([, value]) => value !== '')
    return given.length === 0 ? '/audit' : `/audit?${new URLSearchParams(given)}`
  }
  const { group = '', ...others } = filters
  const entries = groups.map(([name, label]) => [label, address({ group: name })] as const)
  const current = groups.find(([name]) => name === group)?.[1] ?? ''
  const shown = filterForm.show(others, list.ok || needsApp ? null : list.error)
  const note = html`<p class="lead">Choose an app: only admins can read the audit for the whole service.</p>`
  const end = `End of the list. Entries are kept for ${auditDays} days and cannot be changed.`
  const rows = html`${renderDays(items, known, visit.now)}${older(next === null ? null : address({ cursor: next }), end)}${items.length === 0 ? none : exportForm('audit', toQuery(filters))}`
  const body = html`<h1>Audit</h1>
${tabs('Kinds of change', entries, current)}
${shown.problem}
<form method="get" action="/audit" class="filters" data-auto><input type="hidden" name="group" value="${group}">
${shown.field('app', { choices: [['', 'All'], ...[...slugs.values()].map((slug) => [slug, slug] as const)] })}
${shown.field('actor')}
${shown.field('from')}
${shown.field('to')}
<button data-auto>Show</button></form>
${renderPresets(others, address, visit.now)}
${needsApp ? note : rows}`
  return { title: 'Audit', body, nav: 'audit', ...(!list.ok && !needsApp && { status: 400 }) }
}

/** Links to the days that are asked for most. */
function renderPresets(
  { from = '', to = '' }: Filters,
  address: (more: Readonly<Record<string, string>>) => string,
  now: number,
): Html {
  const [today, yesterday] = [toDay(now), toDay(now - dayMs)]
  const presets = [
    ['Today', today, today],
    ['Yesterday', yesterday, yesterday],
    ['Last 7 days', toDay(now - 6 * dayMs), today],
    ['Any time', '', ''],
  ] as const
  const links = presets.map(([label, first, last]) =>
    first === from && last === to
      ? html`<b>${label}</b> `
      : html`<a href="${address({ from: first, to: last })}">${label}</a> `,
  )
  return html`<p class="presets">${links}</p>`
}

/** The names of people by their ids, for those who may know them. */
async function readPeople({ get, may, seesAll }: Visit): Promise<Slugs> {
  const people = may('admin') && seesAll ? await listAll(get, 'person.list', {}) : []
  return new Map(people.map(({ id, name }) => [id, name]))
}

const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

type Known = { readonly names: Slugs; readonly apps: ChangedApps }

function renderDays(items: readonly AuditResource[], known: Known, now: number): Html {
  if (items.length === 0) return html`<p class="empty">No entry matches these filters.</p>`
  const recent = new Map([
    [toDay(now), 'Today'],
    [toDay(now - dayMs), 'Yesterday'],
  ])
  const days = Map.groupBy(fold(items), ({ newest: { at } }) => at.slice(0, 10))
  return html`${[...days].map(([day, entries]) =>
    section(
      recent.get(day) ?? day,
      html`<ol class="entries">${entries.map(({ newest, times }) => renderEntry({ newest, times }, known))}</ol>`,
      { note: recent.has(day) ? `${day} (UTC)` : 'UTC' },
    ),
  )}`
}

type Folded = { readonly newest: AuditResource; times: number }

/** Entries of one person that say the same, one after the other on a day, become one. */
function fold(items: readonly AuditResource[]): Folded[] {
  const folded: Folded[] = []
  for (const item of items) {
    const last = folded.at(-1)
    if (last !== undefined && areAlike(last.newest, item)) last.times++
    else folded.push({ newest: item, times: 1 })
  }
  return folded
}

const areAlike = (one: AuditResource, other: AuditResource): boolean =>
  ['email.find', 'suppression.find', 'checks.run'].includes(one.action) &&
  one.action === other.action &&
  one.actor.name === other.actor.name &&
  one.via === other.via &&
  one.at.slice(0, 10) === other.at.slice(0, 10)

const ways: Readonly<Record<AuditResource['via'], string>> = {
  cli: 'on the command line',
  api: 'through the API',
  console: 'in the console',
  service: 'in dev mode',
}

function renderEntry({ newest: entry, times }: Folded, { apps, names }: Known): Html {
  const { action, at, actor, via } = entry
  return html`<li><time datetime="${at}">${at.slice(11, 19)}</time>
<div><span><b title="${actor.id ?? ''}">${actor.name}</b> ${describeAction(entry, names)}${times > 1 ? `, ${formatCount(times)} times` : ''}</span> ${action === 'session.create' ? none : html`<span class="soft">${ways[via]}</span>`}
${renderChanges(entry, names)}${renderUndo(entry, apps)}</div></li>
`
}

/** The entries of allow-lists that a change removed. */
const findRemoved = ({ action, before }: AuditResource) =>
  (['allowedUrls', 'appSchemes'] as const).flatMap((kind) => {
    const entries = action === 'app.update' ? before?.[kind] : null
    return Array.isArray(entries) ? entries.map((entry) => ({ kind, entry: String(entry) })) : []
  })

/** The apps of which an allow-list was changed, by their ids: what is allowed by now has no button. */
async function readChangedApps({ call, may }: Visit, items: readonly AuditResource[]): Promise<ChangedApps> {
  const ids = may('operator') ? items.filter((item) => findRemoved(item).length > 0).map(({ app }) => app ?? '') : []
  const found = await Promise.all([...new Set(ids)].map((app) => call('app.show', { params: { app } })))
  return new Map(found.flatMap((app) => (app.ok ? [[app.value.id, app.value] as const] : [])))
}
type ChangedApps = ReadonlyMap<string, AppResource>

/** Entries that a change removed can be allowed again. */
function renderUndo(entry: AuditResource, apps: ChangedApps): Html {
  const app = apps.get(entry.app ?? '')
  if (app === undefined) return none
  const buttons = findRemoved(entry)
    .filter((removed) => !app[removed.kind].includes(removed.entry))
    .map((fields) => button(`/apps/${app.slug}/links/add`, `Allow ${fields.entry} again`, { fields }))
  return buttons.length === 0 ? none : html`<div class="actions">${buttons}</div>`
}
