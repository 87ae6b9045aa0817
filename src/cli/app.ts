/** `postern app …`: the apps and their settings. */
import type { Command } from 'commander'
import { type App, defaultSettings, parseSlug, slugFrom } from '../domain/app/app.ts'
import type { Store } from '../store/store.ts'
import { addSettingFlags, applyFlags, checkSettings, collect, type SettingFlags } from './app-settings.ts'
import { type CliDeps, requireApp, withStore } from './context.ts'
import { CommandFailed, iso, moment, print, record, table, UsageError } from './output.ts'

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

async function create(
  deps: CliDeps,
  store: Store,
  flags: SettingFlags & { slug?: string; name: string },
): Promise<void> {
  const base = { ...defaultSettings, name: flags.name, from: { name: '', address: '' } }
  const settings = checkSettings(applyFlags(base, flags))
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
  await change(deps, store, { id, change: { settings: checkSettings(applyFlags(app.settings, flags)) } })
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
  while ((await store.cancelDeletedAppMail(app.id)) > 0);
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
