/**
 * `npm run tables`: writes the tables of the documents that follow from the code, each between
 * `<!-- table: NAME -->` and `<!-- end -->`. `test/tidy.test.ts` fails if one of them is out of date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { CommandSpec } from '../src/cli/command.ts'
import { tasks } from '../src/cli/program.ts'
import { type Setting, settings } from '../src/config/settings.ts'
import { refusals } from '../src/domain/request/rejection.ts'
import { newMetrics } from '../src/observe/metrics.ts'
import { services } from '../src/services/services.ts'
import { readLanguageFile } from '../src/templates/locales/language-files.ts'
import { languageTags, nameLanguage } from '../src/templates/locales/locales.ts'
import { renderRolesTable } from '../test/support/roles-table.ts'
import { renderTable } from '../test/support/table.ts'

type DocumentTable = { readonly name: string; readonly file: string; readonly render: () => string }

const tables: readonly DocumentTable[] = [
  { name: 'features', file: 'ARCHITECTURE.md', render: renderFeatures },
  { name: 'roles', file: 'SECURITY.md', render: renderRolesTable },
  { name: 'settings', file: 'docs/configuration.md', render: renderSettings },
  { name: 'errors', file: 'docs/api.md', render: renderErrors },
  { name: 'commands', file: 'docs/commands.md', render: renderCommands },
  { name: 'languages', file: 'docs/languages.md', render: renderLanguages },
  { name: 'providers', file: 'docs/relays.md', render: renderProviders },
  { name: 'metrics', file: 'docs/observability.md', render: renderMetrics },
]

const code = (text: string): string => `\`${text}\``

/** The words of each feature in the names of files and folders. */
const features = {
  'auth servers': /auth-hooks?/,
  'domains, DKIM': /(?<!^)domains?|dkim|dmarc|spf|signing-keys?|signers|sign-message/,
  'hosted links': /hosted|sealed-link|web\/links/,
  languages: /languages?|locales?/,
  'reports about emails': /bounces?|reports?/,
  'sign-in, people': /sign-in|oidc|people|person|account|guard|operators\/session/,
  suppressions: /suppress(?:ions?)?|strikes/,
  'webhooks to apps': /webhooks?/,
}

function renderFeatures(): string {
  const files = globSync('**/*.{ts,sql}', { cwd: fileURLToPath(toUrl('src')) })
    .filter((file) => !file.includes('.test.'))
    .sort()
  const rows = Object.entries(features).map(([feature, words]) => {
    // The path up to the first folder or file that has such a word in its name.
    const place = new RegExp(`^.*?(?<![a-z])(?:${words.source})(?![a-z])[^/]*(?:/|$)`)
    const places = files.flatMap((file) => place.exec(file)?.[0] ?? [])
    return [feature, [...new Set(places)].map(code).join(', ')]
  })
  return renderTable(['feature', 'folders and files of `src/`'], rows)
}

function renderSettings(): string {
  const rows = Object.entries<Setting>(settings).map(([name, setting]) => [
    code(name),
    describeDefault(setting),
    setting.about,
  ])
  return renderTable(['variable', 'default', 'meaning'], rows)
}

function describeDefault({ absent = 'none', default: value }: Setting): string {
  if (value === undefined) return absent
  if (typeof value === 'string') return code(value)
  const { serve, dev, command } = value
  const others =
    dev === serve || dev === undefined ? '' : `; in dev mode${dev === command ? ' and for commands' : ''} ${code(dev)}`
  return `${serve === undefined ? absent : code(serve)}${others}`
}

/** Refusals of calls of auth servers alone; docs/auth-hooks.md has them. */
export const authHookRefusals: readonly string[] = ['notice_not_sent', 'unsupported_email']

/** The advice to a caller, by the status of the answer. */
const remedies: Readonly<Record<number, string>> = {
  400: 'fix what `issues` lists; do not retry',
  401: 'compare the key with those that `postern key list APP` shows',
  403: 'allow it with the command that the message names, or fix the link',
  429: 'wait `Retry-After` seconds',
  503: 'retry after `Retry-After` seconds, with the same `Idempotency-Key`',
}

function renderErrors(): string {
  const rows = Object.entries(refusals)
    .filter(([name]) => !authHookRefusals.includes(name))
    .map(([name, { message, status }]) => [`${status}`, code(name), message, remedies[status] ?? ''])
  return renderTable(['status', '`code`', 'message', 'what to do'], rows)
}

function renderCommands(): string {
  const sections = Object.entries(tasks).map(([task, listed]) => {
    const rows = listed.flatMap((listing) =>
      'commands' in listing
        ? listing.commands.map((spec) => describeCommand(spec, `${listing.name} `))
        : [describeCommand(listing)],
    )
    return `## ${task}\n\n${renderTable(['command', 'what it does', 'options'], rows)}`
  })
  return sections.join('\n\n')
}

function describeCommand({ about, options = [], use }: CommandSpec, group = ''): readonly string[] {
  const flags =
    typeof options === 'function'
      ? 'one for each setting of an app'
      : options.map(({ long }) => code(long ?? '')).join(', ')
  return [code(`${group}${use}`), about, flags]
}

function renderProviders(): string {
  const rows = services
    .filter(({ name }) => name !== 'generic')
    .map(({ api, events, name, title, tokens }) => {
      const keys = [events?.proof, events?.bodyProof].flatMap((proof) =>
        proof === undefined ? [] : code(`${proof.name}:`),
      )
      const scheme = api === undefined ? '' : code(`${api.scheme ?? name}:`)
      return [title, scheme, tokens === undefined ? '' : code(`oauth=${name}`), keys.join(', ')]
    })
  return renderTable(['provider', 'mail API', 'access tokens for SMTP', 'keys of its webhooks'], rows)
}

function renderLanguages(): string {
  const rows = languageTags.map((tag) => {
    const { direction, readBy } = readLanguageFile(tag).language
    return [code(tag), nameLanguage(tag), direction, readBy.join(', ') || 'nobody yet']
  })
  return renderTable(['tag', 'language', 'direction', 'read by native speakers'], rows)
}

function renderMetrics(): string {
  const store = { now: () => 0, measureQueue: () => Promise.reject(new Error('not asked')) }
  const facts = { store, engine: 'sqlite', queueMax: 0, version: '', linesLost: () => 0 } as const
  const metrics = newMetrics(facts).registry.getMetricsAsArray()
  const rows = metrics
    .filter(({ name }) => name.startsWith('postern_'))
    .map((metric) => {
      // prom-client's types leave the labels out.
      const labels = 'labelNames' in metric && Array.isArray(metric.labelNames) ? metric.labelNames : []
      return [code(metric.name), `${metric.type}`, labels.map(code).join(', '), metric.help]
    })
  return renderTable(['metric', 'type', 'labels', 'meaning'], rows)
}

/** The path of each document with tables, and its text with the tables as the code has them. */
export function renderDocuments(): ReadonlyMap<string, string> {
  const documents = new Map<string, string>()
  for (const { name, file, render } of tables) {
    const text = documents.get(file) ?? readFileSync(toUrl(file), 'utf8')
    const place = new RegExp(`(?<=<!-- table: ${name} -->\n\n).*?(?=\n\n<!-- end -->)`, 's')
    if (!place.test(text)) throw new Error(`${file} has no place for the table ${name}`)
    documents.set(file, text.replace(place, render))
  }
  return documents
}

const toUrl = (file: string): URL => new URL(`../${file}`, import.meta.url)

if (import.meta.main) for (const [file, text] of renderDocuments()) writeFileSync(toUrl(file), text)
