/** `postern app …`: apps and their settings. */

import type { Command } from 'commander'
import { type AppStatus, parseSlug, slugFrom } from '../domain/app/app.ts'
import { defaultSettings } from '../domain/app/settings.ts'
import { counted } from '../domain/counts.ts'
import { updateApp } from '../management/apps/update-app.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { Result } from '../management/operation/result.ts'
import type { AppResource } from '../management/resources.ts'
import type { AppBody } from '../management/settings-schema.ts'
import {
  addRemovals,
  addSettingOptions,
  changeSettings,
  describeSettings,
  parseFrom,
  type SettingOptions,
  toPatch,
} from './app-settings.ts'
import { type Call, type CliDeps, type CommandContext, describeError, withOperations } from './context.ts'
import { CommandFailed, formatTime, print, record, table, UsageError } from './output.ts'

type CreateOptions = SettingOptions & { readonly slug?: string; readonly from: string }

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
    .action(() => withOperations(deps, (context) => list(deps, context)))
  app
    .command('show <app>')
    .description('show one app and its settings')
    .action((app: string) =>
      withOperations(deps, async ({ call }) => show(deps, await call('app.show', { params: { app } }))),
    )
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
  addStatusCommand(app, deps, {
    name: 'suspend',
    status: 'suspended',
    about: 'disable it until an admin of the whole service enables it',
  })
  app
    .command('delete <app>')
    .description('disable and delete an app and its keys, and cancel its queued mail; cannot be undone')
    .option('--yes', 'do not ask')
    .action((app: string, { yes }: { yes?: boolean }) =>
      withOperations(deps, (context) => remove(deps, context, { app, yes: yes ?? false })),
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
      withOperations(deps, (context) => create(deps, context, { ...options, name }), 'create'),
    )
}

function addUpdateCommand(group: Command, deps: CliDeps): void {
  const command = group
    .command('update <app>')
    .description('change only the settings you name; an empty value removes an optional one')
    .optionsGroup('Name:')
    .option('--name <name>', 'name shown in the app’s email')
    .option('--from <sender>', 'From address of the app’s email')
  addRemovals(addSettingOptions(command))
    .optionsGroup('Other:')
    .addHelpText('after', updateExample)
    .action((app: string, options: SettingOptions) =>
      withOperations(deps, (context) => update(deps, context, { app, options })),
    )
}

type StatusCommand = { name: string; status: AppStatus; about: string }

function addStatusCommand(group: Command, deps: CliDeps, { name, status, about }: StatusCommand): void {
  group
    .command(`${name} <app>`)
    .description(about)
    .action((app: string) =>
      withOperations(deps, async ({ call }) =>
        show(deps, await call('app.change', { params: { app }, body: { status } })),
      ),
    )
}

async function create(
  deps: CliDeps,
  { runner }: CommandContext,
  options: CreateOptions & { name: string },
): Promise<void> {
  const { name, slug = slugFrom(options.name), from, ...settings } = options
  if (slug === null || !parseSlug(slug).ok)
    throw new CommandFailed('give a slug of a-z, 0-9 and inner hyphens with --slug')
  const base = { ...defaultSettings, name, from: parseFrom(from) }
  const body = changeSettings(base, settings) as AppBody
  const result = await runner.call('app.put', { params: { app: slug }, body, ifAbsent: true })
  if (!result.ok && result.error.code === 'slug_taken')
    throw new CommandFailed(`the slug "${slug}" is taken; choose another with --slug`)
  const app = unwrapSettings(result)
  const { allowedUrls, appSchemes, allowLocalhost } = app
  const canSend = allowedUrls.length > 0 || appSchemes.length > 0 || allowLocalhost
  const allow = canSend ? '' : `postern app update ${app.slug} --allow-url https://…\n      `
  print(deps.output, app, () => `${describe(app)}\n\nNext: ${allow}postern key create ${app.slug}`)
}

async function update(
  deps: CliDeps,
  { runner }: CommandContext,
  { app: name, options }: { app: string; options: SettingOptions },
): Promise<void> {
  if (Object.keys(options).length === 0)
    throw new UsageError('name at least one setting to change; --help lists them')
  show(deps, unwrapSettings(await updateApp(runner, name, (app) => toPatch(app, options))))
}

function unwrapSettings(result: Result<AppResource>): AppResource {
  if (result.ok) return result.value
  throw new CommandFailed(describeError(result.error, ['app']))
}

async function remove(
  deps: CliDeps,
  { call }: CommandContext,
  { app: name, yes }: { app: string; yes: boolean },
): Promise<void> {
  const { id, slug, status } = await call('app.show', { params: { app: name } })
  if (!yes) await confirmDelete(deps, slug, await countQueued(call, id))
  const params = { app: id }
  if (status === 'active') await call('app.change', { params, body: { status: 'disabled' } })
  const { cancelled, complete } = await call('app.delete', { params })
  const rest = complete ? '' : '; the service cancels the rest'
  print(
    deps.output,
    { id, slug, deleted: true, cancelled, complete },
    () => `deleted ${slug} (${id}); ${counted(cancelled, 'queued email')} cancelled${rest}`,
  )
}

/** How many emails of the app would be cancelled. */
async function countQueued(call: Call, id: string): Promise<number> {
  const { apps } = await call('queue.show', {})
  const waiting = apps.find(({ app }) => app === id)
  return waiting === undefined ? 0 : waiting.queued + waiting.sending + waiting.deferred
}

async function confirmDelete({ ask }: CliDeps, slug: string, queued: number): Promise<void> {
  const answer = await ask(
    `This deletes the app "${slug}" and its keys, and cancels ${counted(queued, 'queued email')}. It cannot be undone.\nType ${slug} to delete it: `,
  )
  if (answer === null)
    throw new CommandFailed(`nothing was deleted: add --yes to delete "${slug}" without confirmation`)
  if (answer.trim() !== slug) throw new CommandFailed('nothing was deleted')
}

async function list(deps: CliDeps, context: CommandContext): Promise<void> {
  const apps = await listAll(context.call, 'app.list', {})
  print(deps.output, apps, () => {
    if (apps.length === 0) return 'no apps yet; "postern app create" makes one'
    return table(
      ['id', 'slug', 'status', 'name', 'created'],
      apps.map((app) => [app.id, app.slug, app.status, app.name, formatTime(app.createdAt)]),
    )
  })
}

const show = (deps: CliDeps, app: AppResource): void => print(deps.output, app, () => describe(app))

function describe(app: AppResource): string {
  return record([
    ['id', app.id],
    ['slug', app.slug],
    ['status', app.status],
    ['name', app.name],
    ['from', `${app.from.name} <${app.from.address}>`],
    ...describeSettings(app),
    ['version', app.version],
    ['created', formatTime(app.createdAt)],
    ['updated', app.version === 1 ? null : formatTime(app.updatedAt)],
  ])
}
