/** `postern app …`: apps and their settings. */
import { type AppStatus, parseSlug, slugFrom } from '../domain/app/app.ts'
import { defaultSettings } from '../domain/app/settings.ts'
import { counted } from '../domain/counts.ts'
import { listAll } from '../management/list-all.ts'
import type { Result } from '../management/operation/result.ts'
import type { AppResource } from '../management/resources.ts'
import type { AppBody } from '../management/settings-schema.ts'
import { updateApp } from '../management/update-app.ts'
import {
  addRemovals,
  addSettingOptions,
  changeSettings,
  describeSettings,
  parseFrom,
  type SettingOptions,
  toPatch,
} from './app-settings.ts'
import { wordsCommand } from './app-words.ts'
import { type CommandGroup, command } from './command.ts'
import { type Call, type CliDeps, describeError } from './context.ts'
import { confirm, yesOption } from './options.ts'
import { CommandFailed, formatTime, listing, record, UsageError } from './output.ts'

type CreateOptions = SettingOptions & { readonly slug?: string; readonly from: string }

const create = command({
  use: 'create <name>',
  about: 'create an app',
  options: (help) =>
    addSettingOptions(
      help
        .optionsGroup('Required:')
        .requiredOption('--from <sender>', 'From address of the app’s email: "Acme <auth@acme.test>"'),
    ).option('--slug <slug>', 'short name for commands and hosted links (default: from the name); never changes'),
  examples: [`postern app create "Acme" --from "Acme <auth@acme.test>" --allow-url 'https://app.acme.test/auth/*'`],
  schemaUse: 'create',
  async run({ runner }, [name], { from, slug: chosen, ...settings }: CreateOptions) {
    const slug = chosen ?? slugFrom(name)
    if (slug === null || !parseSlug(slug).ok)
      throw new CommandFailed('give a slug of a-z, 0-9 and inner hyphens with --slug')
    const base = { ...defaultSettings, name, from: parseFrom(from) }
    const body = changeSettings(base, settings) as AppBody
    const result = await runner.call('app.put', { params: { app: slug }, body, ifAbsent: true })
    if (!result.ok && result.error.code === 'slug_taken')
      throw new CommandFailed(`the slug "${slug}" is taken; choose another with --slug`)
    return unwrapSettings(result)
  },
  show(app) {
    const { allowedUrls, allowLocalhost, appSchemes, slug } = app
    const canSend = allowedUrls.length > 0 || appSchemes.length > 0 || allowLocalhost
    const allow = canSend ? '' : `postern app update ${slug} --allow-url https://…\n      `
    return `${describe(app)}\n\nNext: ${allow}postern key create ${slug}`
  },
})

const list = command({
  use: 'list',
  about: 'list all apps',
  examples: ['postern app list'],
  run: ({ call }) => listAll(call, 'app.list', {}),
  show: (apps) =>
    listing(apps, 'no apps yet; "postern app create" makes one', {
      id: ({ id }) => id,
      slug: ({ slug }) => slug,
      status: ({ status }) => status,
      name: ({ name }) => name,
      created: ({ createdAt }) => formatTime(createdAt),
    }),
})

const show = command({
  use: 'show <app>',
  about: 'show one app and its settings',
  examples: ['postern app show acme'],
  run: ({ call }, [app]) => call('app.show', { params: { app } }),
  show: describe,
})

const update = command({
  use: 'update <app>',
  about: 'change only the settings you name; an empty value removes an optional one',
  options: (help) =>
    addRemovals(
      addSettingOptions(
        help
          .optionsGroup('Name:')
          .option('--name <name>', 'name shown in the app’s email')
          .option('--from <sender>', 'From address of the app’s email'),
      ),
    ).optionsGroup('Other:'),
  examples: [
    'postern app update acme --allow-url https://new.acme.test --remove-allow-url https://old.acme.test',
    "postern app update acme --reply-to ''        removes the Reply-To address",
  ],
  async run({ runner }, [name], options: SettingOptions) {
    if (Object.keys(options).length === 0)
      throw new UsageError('name at least one setting to change; --help lists them')
    return unwrapSettings(await updateApp(runner, name, (app) => toPatch(app, options)))
  },
  show: describe,
})

const statusCommand = (name: string, status: AppStatus, about: string) =>
  command({
    use: `${name} <app>`,
    about,
    examples: [`postern app ${name} acme`],
    run: ({ call }, [app]) => call('app.change', { params: { app }, body: { status } }),
    show: describe,
  })

const remove = command({
  use: 'delete <app>',
  about: 'disable and delete an app and its keys, and cancel its queued mail; cannot be undone',
  options: [yesOption()],
  examples: ['postern app delete acme'],
  async run({ call, deps }, [name], { yes = false }: { yes?: boolean }) {
    const { id, slug, status } = await call('app.show', { params: { app: name } })
    if (!yes) await confirmDelete(deps, slug, await countQueued(call, id))
    const params = { app: id }
    if (status === 'active') await call('app.change', { params, body: { status: 'disabled' } })
    const { cancelled, complete } = await call('app.delete', { params })
    return { id, slug, deleted: true, cancelled, complete }
  },
  show({ cancelled, complete, id, slug }) {
    const rest = complete ? '' : '; the service cancels the rest'
    return `deleted ${slug} (${id}); ${counted(cancelled, 'queued email')} cancelled${rest}`
  },
})

export const appCommands: CommandGroup = {
  name: 'app',
  about: 'create, show and change apps',
  commands: [
    create,
    list,
    show,
    update,
    wordsCommand,
    statusCommand('disable', 'disabled', 'refuse its keys and hold its mail'),
    statusCommand('enable', 'active', 'accept its keys and send held mail'),
    statusCommand('suspend', 'suspended', 'disable it until an admin of the whole service enables it'),
    remove,
  ],
}

function unwrapSettings(result: Result<AppResource>): AppResource {
  if (result.ok) return result.value
  throw new CommandFailed(describeError(result.error, ['app']))
}

/** How many emails of the app would be cancelled. */
async function countQueued(call: Call, id: string): Promise<number> {
  const { apps } = await call('queue.show', {})
  const waiting = apps.find(({ app }) => app === id)
  return waiting === undefined ? 0 : waiting.queued + waiting.sending + waiting.deferred
}

const confirmDelete = (deps: CliDeps, slug: string, queued: number): Promise<void> =>
  confirm(deps, {
    question: `This deletes the app "${slug}" and its keys, and cancels ${counted(queued, 'queued email')}. It cannot be undone.\nType ${slug} to delete it: `,
    answer: slug,
    none: 'nothing was deleted',
    without: `add --yes to delete "${slug}" without confirmation`,
  })

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
