/** The settings of an app for auth servers as options. Each names a system, and maybe a kind of message. */
import type { Command } from 'commander'
import type { AppSettings } from '../domain/app/settings.ts'
import type { SystemSettings } from '../domain/auth-hooks/auth-hook.ts'
import type { AuthHookSettings } from '../domain/auth-hooks/auth-hook-settings.ts'
import { describeDuration } from '../domain/duration.ts'
import { collect } from './command.ts'
import { UsageError } from './output.ts'

export const addAuthHookOptions = (command: Command): Command =>
  command
    .option(
      '--auth-hook-page <system.kind=url>',
      'page for a kind of message, or default; empty for none (repeatable)',
      collect,
    )
    .option('--auth-hook-life <system.kind=seconds>', 'life of its link or code (repeatable)', collect)
    .option('--auth-hook-organisation <system=name>', 'shown in invitations that name none (repeatable)', collect)
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
  readonly authHookVerifyUrl?: string
}

export function changeAuthHooks(settings: AppSettings, options: AuthHookOptions): AppSettings {
  const changes = readChanges(options)
  return changes.length === 0
    ? settings
    : { ...settings, authHooks: changes.reduce(changeAuthHook, settings.authHooks ?? {}) }
}

function readChanges(options: AuthHookOptions): AuthHookChange[] {
  const { authHookLife = [], authHookOrganisation = [], authHookPage = [], authHookVerifyUrl } = options
  return [
    ...authHookPage.map((text) => ({ ...parseKind('--auth-hook-page', text), setting: 'pages' as const })),
    ...authHookLife.map((given) => {
      const life = parseKind('--auth-hook-life', given)
      if (!/^\d{0,9}$/.test(life.text)) throw new UsageError('--auth-hook-life is a whole number of seconds')
      return { ...life, setting: 'lifeSeconds' as const }
    }),
    ...authHookOrganisation.map((text) => {
      const [system = '', ...name] = text.split('=')
      return { system, kind: null, setting: 'organisationName' as const, text: name.join('=') }
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

function changeAuthHook(
  authHooks: AuthHookSettings,
  { system, setting, kind, text }: AuthHookChange,
): AuthHookSettings {
  const own: Readonly<Record<string, unknown>> = authHooks[system] ?? {}
  const value = setting === 'lifeSeconds' && text !== '' ? Number(text) : text
  const next = kind === null ? value : withValue((own[setting] ?? {}) as object, kind, value)
  return withValue(authHooks, system, withValue(own, setting, next)) as AuthHookSettings
}

/** Without what is empty. */
const withValue = (values: object, name: string, value: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries({ ...values, [name]: value }).filter(([, each]) => !isEmpty(each)))

const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** The lines in `app show`, by the names that the options have. */
export const describeAuthHooks = (authHooks: AppSettings['authHooks']): [string, string | undefined][] =>
  Object.entries(authHooks ?? {}).flatMap(([system, { lifeSeconds = {}, organisationName, pages = {}, verifyUrl }]) => [
    [`auth hook ${system}`, verifyUrl],
    [`auth hook ${system}`, organisationName],
    ...Object.entries(pages).map(([kind, url]): [string, string] => [`auth hook ${system}.${kind}`, url]),
    ...Object.entries(lifeSeconds).map(([kind, life]): [string, string] => [
      `auth hook ${system}.${kind}`,
      `links live ${describeDuration(life * 1000)}`,
    ]),
  ])
