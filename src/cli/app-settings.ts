/** The settings of an app as options of `app create` and `app update`, and the settings after a change. */
import { type Command, Option } from 'commander'
import { normalEntries, parseAllowedUrl, parseAppScheme } from '../domain/app/allowed-entry.ts'
import type { Setting } from '../domain/app/setting.ts'
import { type AppSettings, readSetting, settingsByPath } from '../domain/app/settings.ts'
import type { SystemSettings } from '../domain/auth-hooks/auth-hook.ts'
import type { AuthHookSettings } from '../domain/auth-hooks/auth-hook-settings.ts'
import { describeDuration } from '../domain/duration.ts'
import type { AppResource } from '../management/resources.ts'
import { collect } from './command.ts'
import { CommandFailed, UsageError } from './output.ts'

/** The options that were given, by commander's names of them. */
export type SettingOptions = Readonly<Record<string, unknown>>

type SettingOption = NonNullable<Setting['option']>
type OptionalSetting = Setting & { readonly path: string; readonly option: SettingOption }

const optional = [...settingsByPath].flatMap(([path, setting]): OptionalSetting[] =>
  setting.option === undefined ? [] : [{ ...setting, path, option: setting.option }],
)

/** `--allow-url <url>` as `--allow-url` or, with a verb, `--remove-allow-url`. */
const nameOf = ({ flags }: SettingOption, verb = ''): string => `--${verb}${flags.split(' ', 1)[0]?.slice(2)}`
const attributeOf = (option: SettingOption, verb = ''): string => new Option(nameOf(option, verb)).attributeName()

/** The operation says which numbers it takes. */
const wholeParser =
  (name: string) =>
  (value: string): number => {
    if (!/^\d{1,10}$/.test(value)) throw new UsageError(`${name}: "${value}" is not a whole number`)
    return Number(value)
  }

export function addSettingOptions(command: Command): Command {
  const groups = Map.groupBy(optional, ({ option }) => option.group)
  for (const [group, members] of groups) {
    if (group === 'Look') addAuthHookOptions(command.optionsGroup('Auth servers that post to the app:'))
    command.optionsGroup(`${group}:`)
    for (const { choices, kind, option } of members) {
      const added = new Option(option.flags, option.about)
      if (choices !== undefined) added.choices(choices)
      if (kind === 'whole') added.argParser(wholeParser(nameOf(option)))
      if (kind === 'list' || kind === 'map') added.argParser(collect)
      command.addOption(added)
      if (kind === 'switch') command.addOption(new Option(nameOf(option, 'no-'), option.undo))
    }
  }
  return command.optionsGroup('Other:')
}

/** The options of `app update` that remove an entry. */
export function addRemovals(command: Command): Command {
  command.optionsGroup('Remove:')
  for (const { kind, option } of optional)
    if (kind === 'list' || kind === 'map') {
      const [, value = ''] = option.flags.split(' ')
      const flags = `${nameOf(option, 'remove-')} ${value.replace(/=[^>]*/, '')}`
      command.option(flags, option.undo, collect)
    }
  return command
}

const readSender = ({ from, name }: { readonly from?: string; readonly name?: string }) => ({
  ...(name !== undefined && { name }),
  ...(from !== undefined && { from: parseFrom(from) }),
})

/** The text of a quoted string (RFC 5322 §3.2.4). Quotes inside a name are part of it. */
const withoutQuotes = (name: string): string =>
  /^"(?:[^"\\]|\\.)*"$/.test(name) ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name

export function parseFrom(text: string): AppSettings['from'] {
  const [, before = '', address = ''] = /^([^<>]*)<([^<>\s]+)>\s*$/.exec(text) ?? []
  const name = withoutQuotes(before.trim())
  if (name !== '' && address !== '') return { name, address }
  throw new UsageError('--from must look like "Acme <auth@acme.test>"')
}

/** The settings after a change, the allow-list in its normal form. Only options that were given count. */
export function changeSettings(base: AppSettings, options: SettingOptions): AppSettings {
  const { from = base.from, name = base.name } = readSender(options)
  const changed: AppSettings = structuredClone({ ...base, name, from })
  for (const { kind, option, path } of optional) {
    const [given, removed] = [options[attributeOf(option)], options[attributeOf(option, 'remove-')]]
    if (given === undefined && removed === undefined) continue
    write(changed, path, changeValue({ kind, before: readSetting(base, path), given, removed }))
  }
  return {
    ...changeAuthHooks(changed, options),
    allowedUrls: normalEntries(changed.allowedUrls, parseAllowedUrl),
    appSchemes: normalEntries(changed.appSchemes, parseAppScheme),
  }
}

type Change = { kind: Setting['kind']; before: unknown; given: unknown; removed: unknown }

function changeValue({ kind, before, given, removed }: Change): unknown {
  const [added, gone] = [given ?? [], removed ?? []] as [string[], string[]]
  switch (kind) {
    case 'list': {
      const entries = before as readonly string[]
      const absent = gone.find((entry) => !entries.includes(entry))
      if (absent !== undefined)
        throw new CommandFailed(`"${absent}" is not in the list: ${entries.join(', ') || 'it is empty'}`)
      return [...entries.filter((entry) => !gone.includes(entry)), ...added]
    }
    case 'map': {
      const kept = Object.entries(before as object).filter(([key]) => !gone.includes(key))
      return Object.fromEntries([...kept, ...added.map(parseDestination)])
    }
    default:
      return given === '' ? undefined : given
  }
}

function parseDestination(text: string): [type: string, url: string] {
  const [type = '', ...url] = text.split('=')
  if (url.length === 0) throw new UsageError('--link-destination must look like magic_link=acme://auth/magic')
  return [type, url.join('=')]
}

/** Sets or removes a value; `path` has at most two parts. */
function write(settings: Record<string, unknown>, path: string, value: unknown): void {
  const [name = '', inner] = path.split('.')
  const [owner, key] = inner === undefined ? [settings, name] : [settings[name] as Record<string, unknown>, inner]
  if (value === undefined) delete owner[key]
  else owner[key] = value
}

/** The merge patch that makes a change of an app. */
export function toPatch(app: AppResource, options: SettingOptions): Record<string, unknown> {
  const before: AppSettings = app
  const after = changeSettings(before, options)
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof AppSettings)[]
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  return Object.fromEntries(changed.map((name) => [name, mergeable(before[name], after[name])]))
}

/** A merge patch of objects names what is removed. */
function mergeable(before: unknown, after: unknown): unknown {
  if (after === undefined) return null
  if (typeof after !== 'object' || after === null || Array.isArray(after)) return after
  const known = (before ?? {}) as Readonly<Record<string, unknown>>
  const kept = Object.entries(after).map(([name, value]) => [name, mergeable(known[name], value)])
  const gone = Object.keys(known).filter((name) => !(name in after))
  return Object.fromEntries([...kept, ...gone.map((name) => [name, null])])
}

/** The lines of settings in `app show`. */
export const describeSettings = (app: AppSettings): [name: string, value: string | undefined][] =>
  [...settingsByPath].flatMap(([path, setting]) => {
    const value = readSetting(app, path)
    if (path === 'authHooks') return describeAuthHooks(app.authHooks)
    if (path === 'linkDestinations')
      return Object.entries(app.linkDestinations).map(([type, url]) => [`  ${type}`, url])
    if (setting.line === undefined) return []
    const [name, describe = describeValue] = setting.line as readonly [
      string,
      ((value: unknown) => string | undefined)?,
    ]
    return [[name, value === undefined ? undefined : describe(value)]]
  })

const describeValue = (value: unknown): string => (Array.isArray(value) ? value.join(' ') || 'none' : String(value))

const addAuthHookOptions = (command: Command): Command =>
  command
    .option(
      '--auth-hook-page <system.kind=url>',
      'page for a kind of message, or default; empty for none (repeatable)',
      collect,
    )
    .option('--auth-hook-life <system.kind=seconds>', 'life of its link or code (repeatable)', collect)
    .option('--auth-hook-organisation <system=name>', 'shown in invitations that name none (repeatable)', collect)
    .option(
      '--auth-hook-rule <system:rule=type>',
      'the type of emails whose link has a path; empty for none (repeatable)',
      collect,
    )
    .option(
      '--auth-hook-ignore <system=hosts>',
      'add hosts of logos and help pages; empty for none (repeatable)',
      collect,
    )
    .option('--auth-hook-verify-url <url>', "where Supabase's own links lead: https://…/auth/v1/verify")

/** A setting of an auth server, or of one kind of its messages. An empty text removes it. */
type AuthHookChange = {
  readonly system: string
  readonly setting: keyof SystemSettings
  readonly kind: string | null
  readonly text: string
}

type AuthHookOptions = {
  readonly authHookPage?: readonly string[]
  readonly authHookLife?: readonly string[]
  readonly authHookOrganisation?: readonly string[]
  readonly authHookRule?: readonly string[]
  readonly authHookIgnore?: readonly string[]
  readonly authHookVerifyUrl?: string
}

function changeAuthHooks(settings: AppSettings, options: AuthHookOptions): AppSettings {
  const changes = readChanges(options)
  return changes.length === 0
    ? settings
    : { ...settings, authHooks: changes.reduce(changeAuthHook, settings.authHooks ?? {}) }
}

function readChanges(options: AuthHookOptions): AuthHookChange[] {
  const { authHookIgnore = [], authHookLife = [], authHookOrganisation = [], authHookPage = [] } = options
  const { authHookRule = [], authHookVerifyUrl } = options
  return [
    ...authHookPage.map((text) => ({ ...parseKind('--auth-hook-page', text), setting: 'pages' as const })),
    ...authHookLife.map((given) => {
      const life = parseKind('--auth-hook-life', given)
      if (!/^\d{0,9}$/.test(life.text)) throw new UsageError('--auth-hook-life is a whole number of seconds')
      return { ...life, setting: 'lifeSeconds' as const }
    }),
    ...authHookOrganisation.map((given) => ({ ...parseWhole(given), setting: 'organisationName' as const })),
    ...authHookIgnore.map((given) => ({ ...parseWhole(given), setting: 'ignoredHosts' as const })),
    ...authHookRule.map((given) => {
      // A rule may have a `=` of its own.
      const [, system = '', kind = '', text = ''] = /^([a-z]+):(.+)=([a-z_]*)$/.exec(given) ?? []
      if (system === '') throw new UsageError('--auth-hook-rule must look like smtp:/reset/*=password_reset')
      return { system, kind, setting: 'rules' as const, text }
    }),
    ...(authHookVerifyUrl === undefined
      ? []
      : [{ system: 'supabase', kind: null, setting: 'verifyUrl' as const, text: authHookVerifyUrl }]),
  ]
}

function parseKind(option: string, given: string) {
  const [, system = '', kind = '', text = ''] = /^([a-z]+)\.([^=]+)=(.*)$/.exec(given) ?? []
  if (system === '') throw new UsageError(`${option} must look like supabase.signup=…, or kratos.default=…`)
  return { system, kind, text }
}

function parseWhole(given: string) {
  const [system = '', ...text] = given.split('=')
  return { system, kind: null, text: text.join('=') }
}

function changeAuthHook(
  authHooks: AuthHookSettings,
  { system, setting, kind, text }: AuthHookChange,
): AuthHookSettings {
  const own: Readonly<Record<string, unknown>> = authHooks[system] ?? {}
  const value = parseValue(setting, text, own[setting])
  const next = kind === null ? value : withValue((own[setting] ?? {}) as object, kind, value)
  return withValue(authHooks, system, withValue(own, setting, next)) as AuthHookSettings
}

/** Hosts are added to those before. */
function parseValue(setting: AuthHookChange['setting'], text: string, before: unknown): unknown {
  if (text === '') return ''
  if (setting === 'lifeSeconds') return Number(text)
  return setting === 'ignoredHosts' ? [...new Set([...((before ?? []) as string[]), ...text.split(/[\s,]+/)])] : text
}

/** Without what is empty. */
const withValue = (values: object, name: string, value: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries({ ...values, [name]: value }).filter(([, each]) => !isEmpty(each)))

const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** The lines in `app show`, by the names that the options have. */
const describeAuthHooks = (authHooks: AppSettings['authHooks']): [string, string | undefined][] =>
  Object.entries(authHooks ?? {}).flatMap(([system, settings]) => describeSystem(`hook ${system}`, settings))

const describeSystem = (name: string, settings: SystemSettings): [string, string | undefined][] => {
  const { ignoredHosts = [], lifeSeconds = {}, organisationName, pages = {}, rules = {}, verifyUrl } = settings
  return [
    [name, verifyUrl],
    [name, organisationName],
    ...Object.entries(pages).map(([kind, url]): [string, string] => [`${name}.${kind}`, url]),
    ...Object.entries(lifeSeconds).map(([kind, life]): [string, string] => [
      `${name}.${kind}`,
      `links live ${describeDuration(life * 1000)}`,
    ]),
    ...Object.entries(rules).map(([rule, type]): [string, string] => [`${name}:${rule}`, type]),
    [name, ignoredHosts.length === 0 ? undefined : `ignores links to ${ignoredHosts.join(' ')}`],
  ]
}
