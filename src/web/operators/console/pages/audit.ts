/** The audit: who changed what, by which way, with the values before and after. */

import { auditDays } from '../../../../domain/bounds.ts'
import { auditActions } from '../../../../domain/operator/audit.ts'
import type { AuditResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { field, older, section, select, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { readSlugs } from './app-names.ts'

const filterNames = ['app', 'actor', 'action'] as const

export async function showAudit(visit: Visit): Promise<PageAnswer> {
  const given = filterNames.map((name) => [name, visit.query.get(name)?.trim() ?? ''] as const)
  const filters = Object.fromEntries(given.filter(([, value]) => value !== ''))
  const cursor = visit.query.get('cursor')
  const apps = await readSlugs(visit)
  const slugs = [...apps.values()]
  const list = await visit.call('audit.list', { query: { ...filters, ...(cursor !== null && { cursor }) } })
  const needsApp = !list.ok && list.error.code === 'not_permitted'
  if (!list.ok && !needsApp) throw new PageFailed(list.error)
  const items = list.ok ? list.value.items : []
  const next =
    list.ok && list.value.next !== null
      ? `/audit?${new URLSearchParams({ ...filters, cursor: list.value.next })}`
      : null
  const note = html`<p class="lead">Choose an app: only the role admin reads the audit of the whole service.</p>`
  const body = html`<h1>Audit</h1>
<form method="get" action="/audit" class="filters" data-auto>
${select('app', [['', 'all'], ...slugs.map((slug) => [slug, slug] as const)], {
  label: 'App',
  value: filters.app ?? '',
})}
${select('action', [['', 'all'], ...auditActions.map((action) => [action, action] as const)], {
  label: 'Change',
  value: filters.action ?? '',
})}
${field('actor', { label: 'By', value: filters.actor ?? '', attributes: html`placeholder="a name, or cli:root"` })}
<button>Show</button></form>
${needsApp ? note : section('Newest first', html`${renderEntries(items, apps)}${older(next, `This is the end. Entries are kept for ${auditDays} days, and cannot be changed.`)}`)}`
  return { title: 'Audit', body, nav: 'audit' }
}

const names: Readonly<Record<AuditResource['actor']['kind'], string>> = {
  local: 'on the server',
  token: 'token',
  person: 'person',
  service: 'dev mode',
}

function renderEntries(items: readonly AuditResource[], apps: ReadonlyMap<string, string>): Html {
  const rows = items.map((entry) => [
    time(entry.at),
    html`${entry.actor.name}<br><span class="soft">${names[entry.actor.kind]}, ${entry.via}</span>`,
    html`<b>${entry.action}</b><br><span class="soft">${describeTarget(entry, apps)}</span>`,
    renderChange(entry),
  ])
  return table('Audit', ['when', 'who', 'change', 'from → to'], rows, { empty: 'No such change.' })
}

const describeTarget = ({ app, target }: AuditResource, apps: ReadonlyMap<string, string>): string => {
  const slug = app === null ? undefined : apps.get(app)
  return slug === undefined || slug === target ? target : `${slug} · ${target}`
}

const toText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

/** One line for each value that differs. */
function renderChange({ before, after }: AuditResource): Html {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  if (fields.length === 0) return none
  const lines = fields.map((name) => {
    const from = before === null || !(name in before) ? none : html`<del>${toText(before[name])}</del> `
    const to = after === null || !(name in after) ? none : html`<ins>${toText(after[name])}</ins>`
    return html`<li>${name}: ${from}${to}</li>`
  })
  const list = html`<ul class="diff">${lines}</ul>`
  return fields.length <= 4
    ? list
    : html`<details><summary>${fields.length} values</summary>${list}</details>`
}
