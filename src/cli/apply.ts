/** `postern apply`: creates and changes apps to match a file, with a plan shown first. */
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { normalEntries, parseAllowedUrl, parseAppScheme } from '../domain/app/allowed-entry.ts'
import type { AppResource } from '../management/resources.ts'
import type { AppBody } from '../management/settings-schema.ts'
import { type CommandSpec, option } from './command.ts'
import { type CliDeps, type CommandContext, describeError, withOperations } from './context.ts'
import { confirm, yesOption } from './options.ts'
import { CommandFailed, print, UsageError } from './output.ts'

export const applyCommand: CommandSpec = {
  use: 'apply <file>',
  about: 'create and change apps to match a file; "-" is standard input',
  options: [option('--dry-run', 'only show what would change'), yesOption()],
  notes: `The file is YAML or JSON: an app as "postern app show --json" prints it, or a list of them ("postern app list --json"). Needs the role admin. Settings left out of it get
their defaults. Apps left out of it stay as they are.`,
  examples: ['postern apply apps.yaml --dry-run'],
  act: (deps, [file = ''], options: ApplyOptions) =>
    withOperations(deps, (context) => apply(deps, context, file, options), options.dryRun ? 'open' : 'create'),
}

type ApplyOptions = { dryRun?: boolean; yes?: boolean }
type WantedApp = AppBody & { readonly slug: string }
type Change = {
  readonly wanted: WantedApp
  readonly now: AppResource | null
  readonly planned: AppResource
}

async function apply(
  deps: CliDeps,
  context: CommandContext,
  file: string,
  { dryRun = false, yes = false }: ApplyOptions,
): Promise<void> {
  const plan = await makePlan(context, await readApps(file))
  const changes = plan.filter(({ now, planned }) => now === null || differing(now, planned).length > 0)
  const shown = () => (changes.length === 0 ? 'nothing to change' : changes.map(describe).join('\n'))
  const document = {
    changed: changes.map(({ wanted, now }) => ({ slug: wanted.slug, created: now === null })),
  }
  if (dryRun || changes.length === 0) return print(deps.output, { ...document, dryRun }, shown)
  if (!yes)
    await confirm(deps, {
      question: `${shown()}\n\nChange ${changes.length === 1 ? 'this app' : `these ${changes.length} apps`}? Type yes: `,
      answer: 'yes',
      none: 'nothing was changed',
      without: `add --yes to skip the confirmation\n\n${shown()}`,
    })
  for (const change of changes) await write(context, change)
  print(deps.output, { ...document, dryRun }, () => `${yes ? `${shown()}\n\n` : ''}${changes.length} done`)
}

async function readApps(file: string): Promise<WantedApp[]> {
  const document = await parseFile(file)
  const isOne = typeof document === 'object' && document !== null && 'slug' in document
  const apps: unknown = isOne ? [document] : document
  if (!Array.isArray(apps)) throw new UsageError(`${file} must hold an app, or a list of apps`)
  const slugs = new Set<string>()
  for (const [index, app] of apps.entries()) {
    const slug = (app as { slug?: unknown } | null)?.slug
    if (typeof slug !== 'string') throw new UsageError(`${file}: app ${index + 1} has no slug`)
    if (slugs.has(slug)) throw new UsageError(`${file}: the slug "${slug}" appears twice`)
    slugs.add(slug)
  }
  return apps.map(withNormalEntries)
}

/** Whatever is no list of texts stays, so that it is refused with its reason. */
function withNormalEntries(app: WantedApp): WantedApp {
  const { allowedUrls, appSchemes } = app
  return {
    ...app,
    ...(isTexts(allowedUrls) && { allowedUrls: normalEntries(allowedUrls, parseAllowedUrl) }),
    ...(isTexts(appSchemes) && { appSchemes: normalEntries(appSchemes, parseAppScheme) }),
  }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string')

async function parseFile(file: string): Promise<unknown> {
  const { parse } = await import('yaml') // loaded by this command alone
  try {
    return parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${(error as Error).message}`)
  }
}

/** All apps are checked before the first one is changed. */
async function makePlan(context: CommandContext, apps: readonly WantedApp[]): Promise<Change[]> {
  const faults: string[] = []
  const plan: Change[] = []
  for (const wanted of apps) {
    const params = { app: wanted.slug }
    const found = await context.runner.call('app.show', { params })
    const result = await context.runner.call('app.put', { params, body: wanted, query: { dryRun: true } })
    if (!found.ok && found.error.code !== 'not_found') throw new CommandFailed(found.error.message)
    if (result.ok) plan.push({ wanted, now: found.ok ? found.value : null, planned: result.value })
    else faults.push(`${wanted.slug}: ${describeError(result.error, [])}`)
  }
  if (faults.length > 0) throw new CommandFailed(`nothing was changed:\n${faults.join('\n')}`)
  return plan
}

const kept: (keyof AppResource)[] = ['id', 'slug', 'version', 'createdAt', 'updatedAt']

function differing(now: AppResource, planned: AppResource): (keyof AppResource)[] {
  const names = [...new Set([...Object.keys(now), ...Object.keys(planned)])] as (keyof AppResource)[]
  return names.filter((name) => !kept.includes(name) && !isDeepStrictEqual(now[name], planned[name]))
}

function describe({ now, planned }: Change): string {
  if (now === null) return `create ${planned.slug}`
  const lines = differing(now, planned).map(
    (name) => `  ${name}: ${JSON.stringify(now[name]) ?? 'none'} → ${JSON.stringify(planned[name]) ?? 'none'}`,
  )
  return [`change ${planned.slug}`, ...lines].join('\n')
}

/** Only on the version that the plan has shown. */
async function write({ call }: CommandContext, { wanted, now }: Change): Promise<void> {
  const condition = now === null ? { ifAbsent: true } : { ifVersion: now.version }
  await call('app.put', { params: { app: wanted.slug }, body: wanted, ...condition })
}
