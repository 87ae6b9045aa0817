/** The values that an entry of the audit changed: a line for each, with its old and new value. */
import { settingsByPath } from '../../../../domain/app/settings.ts'
import { findSystem } from '../../../../domain/auth-hooks/auth-hooks.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { shortenId } from '../../../../domain/id.ts'
import type { AuditResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { languageTags, nameLanguage } from '../../../../templates/locales/locales.ts'
import { nameEmailType } from '../../email-types.ts'
import { time } from '../parts.ts'
import type { Slugs } from './app-names.ts'

const linesMax = 4

/** @param names the apps and people by their ids */
export function renderChanges(entry: AuditResource, names: Slugs): Html {
  const changes = findChanges(entry)
  // A new object has no old values.
  const isNew = entry.before === null
  // The sentence names a single setting.
  const isNamed = entry.action === 'app.update' && changes.length === 1
  const lines = changes.map(({ path, before, after }) => {
    const [old, next] = [before, after].map((value) => (value === null ? null : renderValue(path, value, names)))
    return html`<li>${isNamed ? none : html`<span class="soft">${nameField(path)}</span> `}${isNew ? (next ?? none) : renderChange(old ?? null, next ?? null)}</li>`
  })
  if (lines.length === 0) return none
  const list = html`<ul class="diff">${lines}</ul>`
  return lines.length <= linesMax ? list : html`<details><summary>${lines.length} values</summary>${list}</details>`
}

const renderChange = (before: Html | null, after: Html | null): Html =>
  before !== null && after !== null
    ? html`<del>${before}</del> → <ins>${after}</ins>`
    : html`${before === null ? none : html`<del class="gone">${before}</del>`}${after === null ? none : html`<ins class="new">${after}</ins>`}`

type Value = string | number | boolean
type Change = { readonly path: string; readonly before: Value | null; readonly after: Value | null }

/** Fields that the entry's sentence already states. */
const stated = new Set(['status', 'disabled', 'revoked', 'state', 'person', 'method'])

/** Values that are the same on both sides are left out, also within an object. */
export function findChanges({ before, after }: AuditResource): Change[] {
  const [old, next] = [flatten('', before), flatten('', after)]
  const paths = [...new Set([...old.keys(), ...next.keys()])].filter(
    (path) => !stated.has(path) && !(path === 'name' && before === null),
  )
  return paths.flatMap((path): Change[] => {
    const [gone = [], came = []] = [old.get(path), next.get(path)]
    const [removed, added] = [
      gone.filter((value) => !came.includes(value)),
      came.filter((value) => !gone.includes(value)),
    ]
    const [was, is] = [removed[0], added[0]]
    if (was !== undefined && is !== undefined && removed.length + added.length === 2)
      return [{ path, before: was, after: is }]
    return [
      ...removed.map((value) => ({ path, before: value, after: null })),
      ...added.map((value) => ({ path, before: null, after: value })),
    ]
  })
}

/** The values by their paths (`limits.daily`); a list has several, and what is empty or off has none. */
function flatten(path: string, value: unknown): Map<string, Value[]> {
  if (value === null || value === undefined || value === '' || value === false) return new Map()
  if (Array.isArray(value)) return value.length === 0 ? new Map() : new Map([[path, value.map(String)]])
  if (typeof value !== 'object') return new Map([[path, [value as Value]]])
  return new Map(
    Object.entries(value).flatMap(([name, inner]) => [...flatten(path === '' ? name : `${path}.${name}`, inner)]),
  )
}

/** Names of fields that are not settings of an app. */
const labels: Readonly<Record<string, string>> = {
  role: 'Role',
  apps: 'Apps',
  expiresAt: 'Expires',
  replacedBy: 'Replaced by',
  count: 'Emails',
  ended: 'Sessions ended',
  reason: 'Reason',
  until: 'Until',
  algorithm: 'Algorithm',
  hook: 'Auth server',
}

/** Settings of auth servers, as their form names them. */
const hookSettings: Readonly<Record<string, string>> = {
  verifyUrl: 'Verify URL',
  'pages.default': 'Page of the app',
  'lifeSeconds.default': 'Lifetime of a link or code',
  ignoredHosts: 'Ignored hosts',
  organisationName: 'Organisation',
}

export function nameField(path: string): string {
  const type = /^linkDestinations\.(.+)$/.exec(path)?.[1]
  const [, system = '', setting = ''] = /^authHooks\.(\w+)\.(.+)$/.exec(path) ?? []
  if (system !== '')
    return `${hookSettings[setting] ?? setting.replaceAll('.', ' ')} of ${findSystem(system)?.title ?? system}`
  const label = settingsByPath.get(path)?.label ?? labels[path] ?? path
  return type === undefined ? label : `${nameEmailType(type)}: the button opens`
}

function renderValue(path: string, value: Value, names: Slugs): Html {
  if (value === true) return html`yes`
  if (typeof value === 'number') return html`${formatCount(value)}`
  const text = String(value)
  const tag = path === 'locale' ? languageTags.find((known) => known === text) : undefined
  if (tag !== undefined) return html`${nameLanguage(tag)}`
  if (path === 'expiresAt' || path === 'until') return time(text)
  return html`${names.get(text) ?? shortenId(text)}`
}
