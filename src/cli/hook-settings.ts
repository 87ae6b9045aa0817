/** The settings of an app for auth servers as options. Each names a system, and maybe a kind of message. */
import type { Command } from 'commander'
import type { AppSettings } from '../domain/app/settings.ts'
import { describeDuration } from '../domain/duration.ts'
import type { HookSettings } from '../domain/hooks/hook-settings.ts'
import type { SystemSettings } from '../domain/hooks/hook-system.ts'
import { collect } from './command.ts'
import { UsageError } from './output.ts'

export const addHookOptions = (command: Command): Command =>
  command
    .option(
      '--hook-page <system.kind=url>',
      'page for a kind of message, or default; empty for none (repeatable)',
      collect,
    )
    .option('--hook-life <system.kind=seconds>', 'life of its link or code (repeatable)', collect)
    .option('--hook-organisation <system=name>', 'shown in invitations that name none (repeatable)', collect)
    .option('--hook-verify-url <url>', "where Supabase's own links lead: https://…/auth/v1/verify")

/** A setting of an auth server, or of one kind of its messages. An empty text removes it. */
type HookChange = {
  readonly system: string
  readonly setting: keyof SystemSettings
  readonly kind: string | null
  readonly text: string
}

type HookOptions = {
  readonly hookPage?: readonly string[]
  readonly hookLife?: readonly string[]
  readonly hookOrganisation?: readonly string[]
  readonly hookVerifyUrl?: string
}

export function changeHooks(settings: AppSettings, options: HookOptions): AppSettings {
  const changes = readChanges(options)
  return changes.length === 0 ? settings : { ...settings, hooks: changes.reduce(changeHook, settings.hooks ?? {}) }
}

function readChanges(options: HookOptions): HookChange[] {
  const { hookLife = [], hookOrganisation = [], hookPage = [], hookVerifyUrl } = options
  return [
    ...hookPage.map((text) => ({ ...parseKind('--hook-page', text), setting: 'pages' as const })),
    ...hookLife.map((given) => {
      const life = parseKind('--hook-life', given)
      if (!/^\d{0,9}$/.test(life.text)) throw new UsageError('--hook-life is a whole number of seconds')
      return { ...life, setting: 'lifeSeconds' as const }
    }),
    ...hookOrganisation.map((text) => {
      const [system = '', ...name] = text.split('=')
      return { system, kind: null, setting: 'organisationName' as const, text: name.join('=') }
    }),
    ...(hookVerifyUrl === undefined
      ? []
      : [{ system: 'supabase', kind: null, setting: 'verifyUrl' as const, text: hookVerifyUrl }]),
  ]
}

function parseKind(option: string, given: string) {
  const [, system = '', kind = '', text = ''] = /^([a-z]+)\.([^=]+)=(.*)$/.exec(given) ?? []
  if (system === '') throw new UsageError(`${option} must look like supabase.signup=…, or kratos.default=…`)
  return { system, kind, text }
}

function changeHook(hooks: HookSettings, { system, setting, kind, text }: HookChange): HookSettings {
  const own: Readonly<Record<string, unknown>> = hooks[system] ?? {}
  const value = setting === 'lifeSeconds' && text !== '' ? Number(text) : text
  const next = kind === null ? value : withValue((own[setting] ?? {}) as object, kind, value)
  return withValue(hooks, system, withValue(own, setting, next)) as HookSettings
}

/** Without what is empty. */
const withValue = (values: object, name: string, value: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries({ ...values, [name]: value }).filter(([, each]) => !isEmpty(each)))

const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** The lines in `app show`, by the names that the options have. */
export const describeHooks = (hooks: AppSettings['hooks']): [string, string | undefined][] =>
  Object.entries(hooks ?? {}).flatMap(([system, { lifeSeconds = {}, organisationName, pages = {}, verifyUrl }]) => [
    [`hook ${system}`, verifyUrl],
    [`hook ${system}`, organisationName],
    ...Object.entries(pages).map(([kind, url]): [string, string] => [`hook ${system}.${kind}`, url]),
    ...Object.entries(lifeSeconds).map(([kind, life]): [string, string] => [
      `hook ${system}.${kind}`,
      `links live ${describeDuration(life * 1000)}`,
    ]),
  ])
