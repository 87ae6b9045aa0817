/**
 * `npm run tables`: writes the tables of documents that follow from the code, each between
 * `<!-- table: NAME -->` and `<!-- end -->`; `test/tidy.test.ts` fails if one is out of date. Those of
 * `<!-- on the site: NAME -->` are on the site and in the packages alone.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CommandSpec } from '../src/cli/command.ts'
import { tasks } from '../src/cli/program.ts'
import { type Setting, settings } from '../src/config/settings.ts'
import type { AuthHookKind } from '../src/domain/auth-hooks/auth-hook.ts'
import { postingSystems } from '../src/domain/auth-hooks/auth-hooks.ts'
import { readEmails } from '../src/domain/auth-hooks/smtp/mail-system.ts'
import { mailSystemTable } from '../src/domain/auth-hooks/smtp/mail-systems.ts'
import { describeDuration } from '../src/domain/duration.ts'
import { type IssueAdvice, issueAdvice } from '../src/domain/request/issue-advice.ts'
import { refusals } from '../src/domain/request/rejection.ts'
import { newMetrics } from '../src/observe/metrics.ts'
import { services } from '../src/services/services.ts'
import { readLanguageFile } from '../src/templates/locales/language-files.ts'
import { languageTags, nameLanguage } from '../src/templates/locales/locales.ts'
import { renderRolesTable } from './roles-table.ts'
import { renderTable } from './table.ts'

/** Parts of documents that follow from the code, by name. */
const generated: Readonly<Record<string, () => string>> = {
  'auth-servers': renderAuthServers,
  commands: renderCommands,
  errors: renderErrors,
  features: renderFeatures,
  ...renderIssues(),
  languages: renderLanguages,
  'mail-systems': renderMailSystems,
  metrics: renderMetrics,
  providers: renderProviders,
  roles: renderRolesTable,
  settings: renderSettings,
}

const code = (text: string): string => `\`${text}\``

/** A file, as a block of code. */
const renderFile = (file: string): string =>
  `\`\`\`${extname(file).slice(1).replace('mjs', 'js')}\n${readFileSync(toUrl(file), 'utf8')}\`\`\``

/** The words of each feature in the names of files and folders. */
const features = {
  'auth servers': /auth-hooks?/,
  'domains, DKIM': /(?<!^)domains?|dkim|dmarc|spf|signing-keys?|signers|sign-message/,
  'hosted links': /hosted|sealed-link|web\/links/,
  languages: /languages?|locales?/,
  'reports about emails': /bounces?|reports?/,
  'sign-in, people': /sign-in|oidc|people|person|account|guard|operators\/session/,
  'SMTP as a way in': /auth-hooks\/smtp|submission|read-mail|(?<!relay\/)smtp-listener/,
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

/** The first group that has the name of a variable. */
const settingGroups: readonly (readonly [title: string, names: RegExp])[] = [
  ['Database', /DATABASE|SECRET_KEYS|QUEUE_MAX/],
  ['Relays', /SMTP/],
  ['Reports', /BOUNCE|REPORTS/],
  ['Console', /CONSOLE|OIDC/],
  ['Commands', /^POSTERN_(URL|TOKEN_FILE)$/],
  ['Listeners', /_LISTEN$|LINKS|AUTH_HOOKS|SUBMISSION/],
  ['Other', /./],
]

function renderSettings(): string {
  const groups = Map.groupBy(
    Object.entries<Setting>(settings),
    ([name]) => settingGroups.find(([, names]) => names.test(name))?.[0],
  )
  const sections = settingGroups.map(([title]) => {
    const rows = (groups.get(title) ?? []).map(([name, setting]) => [
      code(name),
      describeDefault(setting),
      setting.about,
    ])
    return `## ${title}\n\n${renderTable(['variable', 'default', 'meaning'], rows)}`
  })
  return sections.join('\n\n')
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
  401: 'look the key up with `postern key find`, which reads it from standard input',
  403: 'allow it with the command that the message names, or fix the link',
  429: 'wait `Retry-After` seconds',
  503: 'retry after `Retry-After` seconds, with the same `Idempotency-Key`',
}

/** The advice where another code has the same status. */
const remedyByCode: Readonly<Record<string, string>> = {
  address_not_allowed: '`postern key show KEY` lists its networks; `postern key update KEY --network …` replaces them',
}

function renderErrors(): string {
  const rows = Object.entries(refusals)
    .filter(([name]) => !authHookRefusals.includes(name))
    .map(([name, { message, status }]) => [
      code(name),
      `${status}`,
      message,
      remedyByCode[name] ?? remedies[status] ?? '',
    ])
  return renderTable(['code', 'status', 'message', 'what to do'], rows)
}

/** A table for each code of a refusal that has issues. */
function renderIssues(): Record<string, () => string> {
  const entries = Object.entries(issueAdvice).map(([refusal, issues]) => {
    const isOfBody = refusal === 'invalid_body'
    const heads = ['issue', ...(isOfBody ? ['field'] : []), 'what to do']
    const nameFields = (fields?: readonly string[]) =>
      fields === undefined ? 'any' : fields.length > 1 ? 'names in invitations' : fields.map(code).join(', ')
    const toRow = ({ advice, codes, fields }: IssueAdvice) => [
      codes.map(code).join(', '),
      ...(isOfBody ? [nameFields(fields)] : []),
      advice,
    ]
    return [`issues-${refusal}`, () => renderTable(heads, issues.map(toRow))] as const
  })
  return Object.fromEntries(entries)
}

function renderCommands(): string {
  const sections = Object.entries(tasks).map(([task, listed]) => {
    const rows = listed.flatMap((listing) =>
      'commands' in listing
        ? listing.commands.map((spec) => describeCommand(spec, `${listing.name} `))
        : [describeCommand(listing)],
    )
    return `## ${task}\n\n${renderTable(['command', 'what it does'], rows)}`
  })
  return sections.join('\n\n')
}

const describeCommand = ({ about, use }: CommandSpec, group = ''): readonly string[] => [code(`${group}${use}`), about]

/** The steps of `postern auth-hook connect`, and the type of each message, for each auth server. */
function renderAuthServers(): string {
  const sections = postingSystems.map(({ name, title, follows, kinds, setUp }) => {
    const url = `https://hooks.example.com/${name}/acme`
    const steps = setUp({ url, secret: null }).map(({ text, block }, index) => {
      const lines = block === undefined ? [] : ['```text', ...block.split('\n'), '```']
      const indented = lines.map((line) => (line === '' ? '' : `   ${line}`)).join('\n')
      return `${index + 1}. ${text}${lines.length === 0 ? '' : `\n\n${indented}`}`
    })
    const rows = Object.entries(kinds).map(([kind, email]) => [code(kind), describeKind(email)])
    const table = renderTable(['message', 'email'], rows)
    return `## ${title}\n\nTested with requests as ${follows} makes them.\n\n${steps.join('\n\n')}\n\n${table}`
  })
  return sections.join('\n\n')
}

/** The emails of each system that sends over SMTP, and the rules that find them. */
function renderMailSystems(): string {
  const rows = mailSystemTable.flatMap((system) =>
    Object.values(readEmails(system)).map(({ lifeSeconds, rules, type }, n) => [
      n === 0 ? system.title : '',
      code(type),
      describeDuration((lifeSeconds ?? 0) * 1000),
      rules.map(code).join(', '),
    ]),
  )
  return renderTable(['program', 'email', 'lifetime', 'rules for its link'], rows)
}

function describeKind(kind: AuthHookKind): string {
  if (kind === 'notice') return 'a notice: not sent'
  return kind.purpose === undefined ? code(kind.type) : `${code(kind.type)}, purpose ${code(kind.purpose)}`
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

/** The metrics of Postern, without those of Node. */
export function listMetrics() {
  const store = { now: () => 0, measureQueue: () => Promise.reject(new Error('not asked')) }
  const facts = { store, engine: 'sqlite', queueMax: 0, version: '', linesLost: () => 0 } as const
  const metrics = newMetrics(facts).registry.getMetricsAsArray()
  return metrics
    .filter(({ name }) => name.startsWith('postern_'))
    .map((metric) => {
      // prom-client's types leave the labels out.
      const labels = 'labelNames' in metric && Array.isArray(metric.labelNames) ? metric.labelNames : []
      return { name: metric.name, type: `${metric.type}`, labels: labels.map(String), help: metric.help }
    })
}

function renderMetrics(): string {
  const rows = listMetrics().map(({ name, type, labels, help }) => [
    code(name),
    type,
    labels.map(code).join(', '),
    help,
  ])
  return renderTable(['metric', 'type', 'labels', 'meaning'], rows)
}

const tablePlace = /(?<=<!-- table: ([\w-]+) -->\n\n).*?(?=\n\n<!-- end -->)/gs
const sitePlace = /<!-- on the site: (\S+) -->/g

function render(name: string): string {
  const text = name.includes('/') ? renderFile(name) : generated[name]?.()
  if (text === undefined) throw new Error(`nothing is generated as ${name}`)
  return text
}

/** A document as it is kept, with the tables as the code has them. */
export const updateTables = (text: string): string => text.replaceAll(tablePlace, (_, name: string) => render(name))

/** A document as the site and the packages have it: also with long tables and the files of samples. */
export const completeDocument = (text: string): string => text.replaceAll(sitePlace, (_, name: string) => render(name))

const toUrl = (file: string): URL => new URL(`../${file}`, import.meta.url)

if (import.meta.main)
  for (const file of globSync('{,docs/}*.md', { cwd: fileURLToPath(toUrl('')) })) {
    const text = readFileSync(toUrl(file), 'utf8')
    const updated = updateTables(text)
    if (updated !== text) writeFileSync(toUrl(file), updated)
  }
