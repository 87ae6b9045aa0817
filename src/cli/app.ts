/** `postern app …`: apps and their settings. */
import type { Command } from 'commander'
import type { App, AppStatus } from '../domain/app/app.ts'
import { createApp } from '../management/create-app.ts'
import { countQueued, deleteApp } from '../management/delete-app.ts'
import { findApp } from '../management/find-app.ts'
import { presentApp } from '../management/present.ts'
import { setAppStatus, updateApp } from '../management/update-app.ts'
import type { Store } from '../store/store.ts'
import { addSettingOptions, collect, parseFrom, type SettingOptions, toChange } from './app-settings.ts'
import { type CliDeps, withStore } from './context.ts'
import { CommandFailed, formatTime, print, record, table, UsageError, unwrap } from './output.ts'

type CreateOptions = SettingOptions & { slug?: string; from: string }

const createExample = `
Example:
  postern app create "Acme" --from "Acme <auth@acme.test>" --allow-url 'https://app.acme.test/auth/*'`

const updateExample = `
Examples:
  postern app update acme --allow-url https://new.acme.test --remove-allow-url https://old.acme.test
  postern app update acme --reply-to ''        removes the Reply-To address`

export function addAppCommands(program: Command, deps: CliDeps): void {
  const app = program.command('app').description('create, show and change apps')
  addCreateCommand(app, deps)
  app
    .command('list')
    .description('list all apps')
    .action(() => withStore(deps, (store) => list(deps, store)))
  app
    .command('show <app>')
    .description('show one app and its settings')
    .action((app: string) => withStore(deps, async (store) => show(deps, unwrap(await findApp(store, app)))))
  addUpdateCommand(app, deps)
  addStatusCommand(app, deps, {
    name: 'disable',
    status: 'disabled',
    about: 'refuse its keys and hold its mail',
  })
  addStatusCommand(app, deps, {
    name: 'enable',
    status: 'active',
    about: 'accept its keys and send held mail',
  })
  app
    .command('delete <app>')
    .description('delete an app and its keys, and cancel its queued mail; cannot be undone')
    .option('--yes', 'do not ask')
    .action((app: string, { yes }: { yes?: boolean }) =>
      withStore(deps, (store) => remove(deps, store, { app, yes: yes ?? false })),
    )
}

function addCreateCommand(group: Command, deps: CliDeps): void {
  const command = group
    .command('create <name>')
    .description('create an app')
    .optionsGroup('Required:')
    .requiredOption('--from <sender>', 'From address of the app’s email: "Acme <auth@acme.test>"')
  addSettingOptions(command)
    .option(
      '--slug <slug>',
      'short name for commands and hosted links (default: from the name); never changes',
    )
    .addHelpText('after', createExample)
    .action((name: string, options: CreateOptions) =>
      withStore(deps, (store) => create(deps, store, { ...options, name }), 'create'),
    )
}

function addUpdateCommand(group: Command, deps: CliDeps): void {
  const command = group
    .command('update <app>')
    .description('change settings; those not named stay, and an empty value removes an optional one')
    .optionsGroup('Name:')
    .option('--name <name>', 'name shown in the app’s email')
    .option('--from <sender>', 'From address of the app’s email')
  addSettingOptions(command)
    .optionsGroup('Remove:')
    .option('--remove-allow-url <url>', 'disallow a link (repeatable)', collect)
    .option('--remove-app-scheme <scheme>', 'disallow a scheme (repeatable)', collect)
    .option('--remove-link-destination <type>', 'remove a destination (repeatable)', collect)
    .optionsGroup('Other:')
    .addHelpText('after', updateExample)
    .action((app: string, options: SettingOptions) =>
      withStore(deps, (store) => update(deps, store, { app, options })),
    )
}

type StatusCommand = { name: string; status: AppStatus; about: string }

function addStatusCommand(group: Command, deps: CliDeps, { name, status, about }: StatusCommand): void {
  group
    .command(`${name} <app>`)
    .description(about)
    .action((app: string) =>
      withStore(deps, async (store) => show(deps, unwrap(await setAppStatus(store, app, status)))),
    )
}

async function create(deps: CliDeps, store: Store, options: CreateOptions & { name: string }): Promise<void> {
  const { name, slug, from, ...settings } = options
  const change = toChange(settings)
  const app = unwrap(
    await createApp(store, { name, from: parseFrom(from), settings: change, ...(slug && { slug }) }),
  )
  const { allowedUrls, appSchemes, allowLocalhost } = app.settings
  const canSend = allowedUrls.length > 0 || appSchemes.length > 0 || allowLocalhost
  const allow = canSend ? '' : `postern app update ${app.slug} --allow-url https://…\n      `
  print(
    deps.output,
    presentApp(app),
    () => `${describe(app)}\n\nNext: ${allow}postern key create ${app.slug}`,
  )
}

async function update(
  deps: CliDeps,
  store: Store,
  { app: name, options }: { app: string; options: SettingOptions },
): Promise<void> {
  if (Object.keys(options).length === 0)
    throw new UsageError('name at least one setting to change; --help lists them')
  show(deps, unwrap(await updateApp(store, name, toChange(options))))
}

async function remove(
  deps: CliDeps,
  store: Store,
  { app: name, yes }: { app: string; yes: boolean },
): Promise<void> {
  const app = unwrap(await findApp(store, name))
  if (!yes) await confirmDelete(deps, app, await countQueued(store, app))
  const cancelled = await deleteApp(store, app)
  print(
    deps.output,
    { id: app.id, slug: app.slug, deleted: true, cancelled },
    () => `deleted ${app.slug} (${app.id}); ${cancelled} queued emails cancelled`,
  )
}

async function confirmDelete({ ask }: CliDeps, { slug }: App, queued: number): Promise<void> {
  const answer = await ask(
    `This deletes the app "${slug}" and its keys, and cancels ${queued} queued emails. It cannot be undone.\nType ${slug} to delete it: `,
  )
  if (answer === null)
    throw new CommandFailed(`nothing was deleted: to delete "${slug}" without a question, add --yes`)
  if (answer.trim() !== slug) throw new CommandFailed('nothing was deleted')
}

async function list(deps: CliDeps, store: Store): Promise<void> {
  const apps = await store.listApps()
  print(deps.output, apps.map(presentApp), () => {
    if (apps.length === 0) return 'no apps yet; "postern app create" makes one'
    return table(
      ['id', 'slug', 'status', 'name', 'created'],
      apps.map((app) => [app.id, app.slug, app.status, app.settings.name, formatTime(app.createdAt)]),
    )
  })
}

const show = (deps: CliDeps, app: App): void => print(deps.output, presentApp(app), () => describe(app))

function describe({ id, slug, status, createdAt, settings }: App): string {
  const { branding, limits } = settings
  return record([
    ['id', id],
    ['slug', slug],
    ['status', status],
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
    ['limits', `${limits.keyPerMinute} requests a minute per key`],
    ['', `${limits.recipientPerHour} emails an hour per recipient`],
    ['', `${limits.daily} emails a day`],
    ['created', formatTime(createdAt)],
  ])
}
