/** `postern key …`: delivery keys. A key is shown once, when it is created. */

import { type Command, Option } from 'commander'
import { hasEnded } from '../domain/bearer.ts'
import { dayMs } from '../domain/duration.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { KeyResource } from '../management/resources.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { formatTime, print, record, table, UsageError } from './output.ts'
import { parseLength, parseTime } from './time.ts'

type ReplaceOptions = { grace: number; expires?: string }
type CreateOptions = { app: string; name?: string; expires?: string }
type ChangeOptions = { name?: string; expires?: string }

export function addKeyCommands(program: Command, deps: CliDeps): void {
  const key = program.command('key').description('create, list, replace and revoke delivery keys')
  addCreateCommand(key, deps)
  addReadCommands(key, deps)
  addChangeCommands(key, deps)
}

function addCreateCommand(key: Command, deps: CliDeps): void {
  key
    .command('create <app>')
    .description('create a key; it is shown once')
    .option('--name <name>', 'where the key is used, e.g. production')
    .option('--expires <date>', 'when the key expires: 2027-01-31 or an ISO 8601 timestamp', parseExpires)
    .action((app: string, options: Omit<CreateOptions, 'app'>) =>
      withOperations(deps, (context) => create(deps, context, { app, ...options })),
    )
}

function addReadCommands(key: Command, deps: CliDeps): void {
  key
    .command('list <app>')
    .description('list the keys of an app')
    .action((app: string) => withOperations(deps, (context) => list(deps, context, app)))
  key
    .command('show <key>')
    .description('show the record of one key')
    .action((id: string) =>
      withOperations(deps, async ({ call }) => show(deps, await call('key.show', { params: { key: id } }))),
    )
  key
    .command('find')
    .description('show the record of a leaked key, read from standard input')
    .addHelpText('after', '\nExample:\n  grep -o "pst_[0-9A-Za-z]*" app.log | head -1 | postern key find')
    .action(() => withOperations(deps, (context) => find(deps, context)))
}

function addChangeCommands(key: Command, deps: CliDeps): void {
  key
    .command('update <key>')
    .description("change a key's name or expiry")
    .option('--name <name>', 'where the key is used, e.g. production')
    .option('--expires <date>', "when the key expires; '' for never", (text) =>
      text === '' ? '' : parseExpires(text),
    )
    .action((id: string, options: ChangeOptions) =>
      withOperations(deps, (context) => change(deps, context, id, options)),
    )
  key
    .command('replace <key>')
    .description('create a new key with the same app and name; the old one keeps working for a while')
    .addOption(
      new Option('--grace <time>', 'how long the old key keeps working: 0, 30m, 24h or 7d')
        .argParser(parseGrace)
        .default(dayMs, '24h'),
    )
    .option(
      '--expires <date>',
      'when the new key expires (default: never, even if the old one does)',
      parseExpires,
    )
    .addHelpText('after', '\nExample:\n  postern key replace key_… --grace 1h')
    .action((id: string, options: ReplaceOptions) =>
      withOperations(deps, (context) => replace(deps, context, id, options)),
    )
  key
    .command('revoke <key>')
    .description('revoke a key by its id; takes effect for the next request')
    .action((id: string) => withOperations(deps, (context) => revoke(deps, context, id)))
}

/** More than any key has. */
const keyCharactersMax = 200

export function parseGrace(text: string): number {
  const ms = text === '0' ? 0 : parseLength(text)
  if (ms === null)
    throw new UsageError('--grace must be 0, or a number with m, h or d, such as 30m, 24h or 7d')
  return ms
}

const parseExpires = (text: string): string => parseTime(text, '--expires')

async function create(deps: CliDeps, { call }: CommandContext, options: CreateOptions): Promise<void> {
  const { app, name, expires } = options
  const body = { ...(name && { name }), ...(expires && { expiresAt: expires }) }
  const made = await call('key.create', { params: { app }, body })
  print(deps.output, made, () => `${made.key}\n\n${afterCreate(made, app)}`)
}

const afterCreate = ({ id }: KeyResource, app: string): string =>
  `id ${id}, app ${app}. The key is shown only this once.

Next, in the app's environment:
  POSTERN_DELIVERY_KEY=the key above
  POSTERN_BASE_URL=the address of the API, e.g. http://127.0.0.1:4020
and to see a first email: postern send-test YOUR@ADDRESS --app ${app}`

async function replace(
  deps: CliDeps,
  { call }: CommandContext,
  id: string,
  { grace, expires }: ReplaceOptions,
): Promise<void> {
  const body = { graceSeconds: grace / 1000, ...(expires && { expiresAt: expires }) }
  const made = await call('key.replace', { params: { key: id }, body })
  const old = grace === 0 ? 'no longer works' : `works until ${formatTime(made.oldExpiresAt)} at the latest`
  print(
    deps.output,
    made,
    () => `${made.key}\n\nid ${made.id}. The key is shown only this once. The old key ${id} ${old}.`,
  )
}

async function revoke(deps: CliDeps, { call }: CommandContext, id: string): Promise<void> {
  const revoked = await call('key.revoke', { params: { key: id } })
  print(deps.output, revoked, () => `revoked ${revoked.id}`)
}

async function change(
  deps: CliDeps,
  { call }: CommandContext,
  id: string,
  { name, expires }: ChangeOptions,
): Promise<void> {
  const body = {
    ...(name !== undefined && { name }),
    ...(expires !== undefined && { expiresAt: expires || null }),
  }
  if (Object.keys(body).length === 0) throw new UsageError('nothing to change: give --name or --expires')
  show(deps, await call('key.change', { params: { key: id }, body }))
}

async function find(deps: CliDeps, { call }: CommandContext): Promise<void> {
  const key = (await deps.ask('The key: ')) ?? (await deps.readInput(keyCharactersMax))
  show(deps, await call('key.find', { body: { key: key.trim() } }))
}

function describeStatus({ revokedAt, expiresAt }: KeyResource): string {
  if (revokedAt !== null) return `revoked ${formatTime(revokedAt)}`
  if (expiresAt === null) return 'active'
  return hasEnded({ revokedAt, expiresAt }, Date.now())
    ? `expired ${formatTime(expiresAt)}`
    : `active until ${formatTime(expiresAt)}`
}

async function list(deps: CliDeps, context: CommandContext, app: string): Promise<void> {
  const keys = await listAll(context.call, 'key.list', { params: { app } })
  print(deps.output, keys, () => {
    if (keys.length === 0) return `no keys yet; "postern key create ${app}" makes one`
    const rows = keys.map((key) => [
      key.id,
      key.name,
      describeStatus(key),
      formatTime(key.createdAt),
      formatTime(key.lastUsedAt),
    ])
    return table(['id', 'name', 'status', 'created', 'last used'], rows)
  })
}

const show = (deps: CliDeps, key: KeyResource): void =>
  print(deps.output, key, () =>
    record([
      ['id', key.id],
      ['app', key.app],
      ['name', key.name],
      ['status', describeStatus(key)],
      ['created', `${formatTime(key.createdAt)} by ${key.createdBy}`],
      ['replaces', key.replaces],
      ['last used', formatTime(key.lastUsedAt) ?? 'never'],
    ]),
  )
