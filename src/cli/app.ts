/** `postern app …`: the apps and their settings. */
import { type Command, Option } from 'commander'
import {
  type App,
  type AppSettings,
  defaultSettings,
  parseAppSettings,
  parseSlug,
  slugFrom,
} from '../email/app.ts'
import { type HostedLinkMode, hostedLinkModes } from '../email/hosted-link.ts'
import type { Store } from '../store/store.ts'
import { locales } from '../templates/render-template.ts'
import { type CliDeps, requireApp, withStore } from './context.ts'
import { CommandFailed, iso, moment, print, record, table, UsageError } from './output.ts'

type SettingFlags = {
  name?: string
  from?: string
  envelopeFrom?: string
  replyTo?: string
  support?: string
  allowUrl: string[]
  removeAllowUrl?: string[]
  appScheme: string[]
  removeAppScheme?: string[]
  allowLocalhost?: boolean
  hostedLinks?: HostedLinkMode
  linkDestination: string[]
  removeLinkDestination?: string[]
  fallbackUrl?: string
  logoUrl?: string
  accentColour?: string
  addressLine?: string
  locale?: string
  keyPerMinute?: number
  recipientPerHour?: number
  daily?: number
}

const collect = (value: string, all: string[]) => [...all, value]

function whole(value: string): number {
  if (!/^\d{1,10}$/.test(value)) throw new UsageError(`"${value}" is not a whole number`)
  return Number(value)
}

function addSettingFlags(command: Command): Command {
  return command
    .option('--envelope-from <address>', 'where bounces go, if not the sender')
    .option('--reply-to <address>', 'where answers go')
    .option('--support <contact>', 'shown in each email, e.g. an address')
    .option(
      '--allow-url <url>',
      'a link that may be sent: origin, origin/path or origin/prefix/* (repeatable)',
      collect,
      [],
    )
    .option(
      '--app-scheme <scheme>',
      'a custom scheme that may be sent, e.g. acme or acme://auth (repeatable)',
      collect,
      [],
    )
    .option('--allow-localhost', 'allow links to localhost and 127.0.0.1 (development)')
    .addOption(new Option('--no-allow-localhost', 'take that back'))
    .addOption(
      new Option('--hosted-links <mode>', 'which emails carry a link to our page').choices(hostedLinkModes),
    )
    .option(
      '--link-destination <type=url>',
      'what the page opens for a type of email (repeatable)',
      collect,
      [],
    )
    .option('--fallback-url <url>', 'https URL for devices without the app')
    .option('--logo-url <url>', 'https URL of the logo')
    .option('--accent-colour <#rrggbb>', 'colour of the button')
    .option('--address-line <text>', 'below each email')
    .option('--locale <language>', `language of the emails: ${Object.keys(locales).join(', ')}`)
    .option('--key-per-minute <n>', 'requests per key and minute', whole)
    .option('--recipient-per-hour <n>', 'emails per recipient and hour', whole)
    .option('--daily <n>', 'emails per day (UTC)', whole)
}

export function addAppCommands(program: Command, deps: CliDeps): void {
  const app = program.command('app').description('create, show and change apps')
  addSettingFlags(app.command('create <name>'))
    .description('create an app')
    .requiredOption('--from <sender>', 'sender of its emails: "Acme <auth@acme.test>"')
    .option('--slug <slug>', 'short name in addresses and commands; never changes')
    .action((name: string, flags: SettingFlags & { slug?: string }) =>
      withStore(deps, (store) => create(deps, store, { ...flags, name })),
    )
  app
    .command('list')
    .description('all apps')
    .action(() => withStore(deps, (store) => list(deps, store)))
  app
    .command('show <app>')
    .description('one app whole')
    .action((id: string) => withStore(deps, async (store) => show(deps, await requireApp(store, id))))
  addSettingFlags(app.command('update <app>'))
    .description('change settings; what is not named stays')
    .option('--name <name>', 'name shown in its emails')
    .option('--from <sender>', 'sender of its emails')
    .option('--remove-allow-url <url>', 'no longer allow a link (repeatable)', collect, [])
    .option('--remove-app-scheme <scheme>', 'no longer allow a scheme (repeatable)', collect, [])
    .option('--remove-link-destination <type>', 'take a destination back (repeatable)', collect, [])
    .action((id: string, flags: SettingFlags) =>
      withStore(deps, (store) => update(deps, store, { id, flags })),
    )
  for (const status of ['disabled', 'active'] as const) {
    app
      .command(status === 'disabled' ? 'disable <app>' : 'enable <app>')
      .description(
        status === 'disabled'
          ? 'refuse its keys and hold its mail'
          : 'take requests and send held mail again',
      )
      .action((id: string) => withStore(deps, (store) => change(deps, store, { id, change: { status } })))
  }
  app
    .command('delete <app>')
    .description('delete an app and its keys; its queued mail is cancelled and wiped')
    .action((id: string) => withStore(deps, (store) => remove(deps, store, id)))
}

function parseFrom(text: string): AppSettings['from'] {
  const match = /^\s*"?([^"<>]*?)"?\s*<([^<>\s]+)>\s*$/.exec(text)
  if (match?.[1] && match[2]) return { name: match[1], address: match[2] }
  throw new UsageError('--from must look like "Acme <auth@acme.test>"')
}

const given = <K extends string, T>(key: K, value: T | undefined) =>
  value === undefined ? {} : ({ [key]: value } as Record<K, T>)

function applyFlags(base: AppSettings, flags: SettingFlags): AppSettings {
  const without = (all: readonly string[], gone: readonly string[] = []) =>
    all.filter((entry) => !gone.includes(entry))
  return {
    ...base,
    ...given('name', flags.name),
    ...(flags.from === undefined ? {} : { from: parseFrom(flags.from) }),
    ...given('envelopeFrom', flags.envelopeFrom),
    ...given('replyTo', flags.replyTo),
    ...given('supportContact', flags.support),
    ...given('allowLocalhost', flags.allowLocalhost),
    ...given('locale', flags.locale),
    ...given('hostedLinks', flags.hostedLinks),
    ...given('fallbackUrl', flags.fallbackUrl),
    linkDestinations: destinations(base.linkDestinations, flags),
    allowedUrls: [...without(base.allowedUrls, flags.removeAllowUrl), ...flags.allowUrl],
    appSchemes: [...without(base.appSchemes, flags.removeAppScheme), ...flags.appScheme],
    branding: {
      ...base.branding,
      ...given('logoUrl', flags.logoUrl),
      ...given('accentColour', flags.accentColour),
      ...given('addressLine', flags.addressLine),
    },
    limits: {
      ...base.limits,
      ...given('keyPerMinute', flags.keyPerMinute),
      ...given('recipientPerHour', flags.recipientPerHour),
      ...given('daily', flags.daily),
    },
  }
}

function destinations(
  base: AppSettings['linkDestinations'],
  flags: SettingFlags,
): AppSettings['linkDestinations'] {
  const kept = Object.entries(base).filter(([type]) => !flags.removeLinkDestination?.includes(type))
  const added = flags.linkDestination.map((text) => {
    const [type = '', ...url] = text.split('=')
    if (url.length === 0)
      throw new UsageError('--link-destination must look like magic_link=acme://auth/magic')
    return [type, url.join('=')]
  })
  return Object.fromEntries([...kept, ...added])
}

function check(settings: AppSettings): AppSettings {
  const parsed = parseAppSettings(settings, Object.keys(locales))
  if (parsed.ok) return parsed.value
  throw new CommandFailed(
    `these settings are refused:\n${parsed.issues.map((issue) => `  ${issue.field}: ${issue.message}`).join('\n')}`,
  )
}

async function create(
  deps: CliDeps,
  store: Store,
  flags: SettingFlags & { slug?: string; name: string },
): Promise<void> {
  const base = { ...defaultSettings, name: flags.name, from: { name: '', address: '' } }
  const settings = check(applyFlags(base, flags))
  const slug = flags.slug ?? slugFrom(flags.name)
  if (slug === null || !parseSlug(slug).ok)
    throw new UsageError('give a slug of a-z, 0-9 and inner hyphens with --slug')
  const app = await store.createApp(slug, settings)
  if (app === null) throw new CommandFailed(`the slug "${slug}" is taken; choose another with --slug`)
  show(deps, app)
}

async function update(
  deps: CliDeps,
  store: Store,
  { id, flags }: { id: string; flags: SettingFlags },
): Promise<void> {
  const app = await requireApp(store, id)
  for (const [entries, gone] of [
    [app.settings.allowedUrls, flags.removeAllowUrl],
    [app.settings.appSchemes, flags.removeAppScheme],
  ] as const) {
    const absent = gone?.find((entry) => !entries.includes(entry))
    if (absent !== undefined)
      throw new CommandFailed(
        `"${absent}" is not among ${entries.join(', ') || 'the entries: there are none'}`,
      )
  }
  await change(deps, store, { id, change: { settings: check(applyFlags(app.settings, flags)) } })
}

async function change(
  deps: CliDeps,
  store: Store,
  { id, change }: { id: string; change: Parameters<Store['updateApp']>[1] },
): Promise<void> {
  const app = await requireApp(store, id)
  const changed = await store.updateApp(app.id, change)
  if (changed === null) throw new CommandFailed(`the app "${id}" is gone`)
  show(deps, changed)
}

async function remove(deps: CliDeps, store: Store, id: string): Promise<void> {
  const app = await requireApp(store, id)
  const waiting = (await store.queueSummary()).counts.filter((count) => count.app === app.id)
  const total = waiting.reduce((sum, { count }) => sum + count, 0)
  if (total > 5000) deps.output.err(`cancelling ${total} queued emails…`)
  await store.deleteApp(app.id)
  while ((await store.cancelMail(app.id)) > 0);
  print(
    deps.output,
    { id: app.id, slug: app.slug, deleted: true, cancelled: total },
    () => `deleted ${app.slug} (${app.id}); ${total} queued emails cancelled`,
  )
}

const present = (app: App) => ({
  id: app.id,
  slug: app.slug,
  status: app.status,
  createdAt: iso(app.createdAt),
  ...app.settings,
})

async function list(deps: CliDeps, store: Store): Promise<void> {
  const apps = await store.listApps()
  print(deps.output, apps.map(present), () => {
    if (apps.length === 0) return 'no apps yet; "postern app create" makes one'
    return table(
      ['id', 'slug', 'status', 'name', 'created'],
      apps.map((app) => [app.id, app.slug, app.status, app.settings.name, moment(app.createdAt)]),
    )
  })
}

function show(deps: CliDeps, app: App): void {
  const { settings } = app
  const { limits, branding } = settings
  print(deps.output, present(app), () =>
    record([
      ['id', app.id],
      ['slug', app.slug],
      ['status', app.status],
      ['name', settings.name],
      ['from', `${settings.from.name} <${settings.from.address}>`],
      ['envelope from', settings.envelopeFrom],
      ['reply to', settings.replyTo],
      ['support', settings.supportContact],
      ['allowed urls', settings.allowedUrls.join(' ') || 'none'],
      ['app schemes', settings.appSchemes.join(' ') || 'none'],
      ['localhost', settings.allowLocalhost ? 'allowed' : 'not allowed'],
      ['hosted links', settings.hostedLinks],
      ...Object.entries(settings.linkDestinations).map(([type, url]) => [`  ${type}`, url] as const),
      ['fallback', settings.fallbackUrl],
      ['logo', branding.logoUrl],
      ['accent colour', branding.accentColour],
      ['address line', branding.addressLine],
      ['locale', settings.locale],
      [
        'limits',
        `${limits.keyPerMinute} requests a minute per key, ${limits.recipientPerHour} emails an hour per recipient, ${limits.daily} a day`,
      ],
      ['created', moment(app.createdAt)],
    ]),
  )
}
