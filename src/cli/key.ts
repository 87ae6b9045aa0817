/** `postern key …`: delivery keys. A key is shown once, when it is created. */
import { type Command, Option } from 'commander'
import { parseTimestamp } from '../domain/request/timestamp.ts'
import { type CreatedKey, createKey } from '../management/create-key.ts'
import { findApp } from '../management/find-app.ts'
import { iso, isoOrNull, presentKey } from '../management/present.ts'
import { replaceKey } from '../management/replace-key.ts'
import { revokeKey } from '../management/revoke-key.ts'
import { dayMs } from '../store/shared/bounds.ts'
import type { KeyRecord, Store } from '../store/store.ts'
import { type CliDeps, withStore } from './context.ts'
import { formatTime, print, table, UsageError, unwrap } from './output.ts'

type ReplaceOptions = { grace: number; expires?: number }
type CreateOptions = { app: string; name?: string; expires?: number }

export function addKeyCommands(program: Command, deps: CliDeps): void {
  const key = program.command('key').description('create, list, replace and revoke delivery keys')
  key
    .command('create <app>')
    .description('create a key; it is shown once')
    .option('--name <name>', 'where the key is used, e.g. production')
    .option('--expires <date>', 'end of the key: 2027-01-31 or an ISO 8601 timestamp', parseExpires)
    .action((app: string, options: Omit<CreateOptions, 'app'>) =>
      withStore(deps, (store) => create(deps, store, { app, ...options })),
    )
  key
    .command('list <app>')
    .description('list the keys of an app')
    .action((app: string) => withStore(deps, (store) => list(deps, store, app)))
  key
    .command('replace <key>')
    .description('make a new key of the same app and name; the old one keeps working for a while')
    .addOption(
      new Option('--grace <time>', 'how long the old key keeps working: 0, 30m, 24h or 7d')
        .argParser(parseGrace)
        .default(dayMs, '24h'),
    )
    .option('--expires <date>', 'end of the new key (default: none, whatever the old one has)', parseExpires)
    .addHelpText('after', '\nExample:\n  postern key replace key_… --grace 1h')
    .action((id: string, options: ReplaceOptions) =>
      withStore(deps, (store) => replace(deps, store, id, options)),
    )
  key
    .command('revoke <key>')
    .description('revoke a key by its id; takes effect for the next request')
    .action((id: string) => withStore(deps, (store) => revoke(deps, store, id)))
}

const graceUnits: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: dayMs }

function parseGrace(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  if (text === '0') return 0
  if (count === '') throw new UsageError('--grace is 0, or a number with m, h or d: 30m, 24h, 7d')
  return Number(count) * (graceUnits[unit] ?? 0)
}

function parseExpires(text: string): number {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const parsed = parseTimestamp(isDate ? `${text}T00:00:00Z` : text, '--expires')
  if (parsed.ok) return parsed.value
  throw new UsageError(`--expires: ${parsed.issues[0]?.message}`)
}

async function create(deps: CliDeps, store: Store, options: CreateOptions): Promise<void> {
  const app = unwrap(await findApp(store, options.app))
  const newKey = { name: options.name ?? null, expiresAt: options.expires ?? null }
  const { key, record } = unwrap(await createKey(store, app, newKey))
  print(deps.output, presentNewKey({ key, record }), () => `${key}\n\n${afterCreate(record, app.slug)}`)
}

const presentNewKey = ({ key, record }: CreatedKey) => ({
  id: record.id,
  key,
  app: record.app,
  name: record.name,
  createdAt: iso(record.createdAt),
  expiresAt: isoOrNull(record.expiresAt),
})

async function replace(
  deps: CliDeps,
  store: Store,
  id: string,
  { grace: graceMs, expires }: ReplaceOptions,
): Promise<void> {
  const replaced = unwrap(await replaceKey(store, id, { expiresAt: expires ?? null, graceMs }))
  const { key, record } = replaced
  const old =
    graceMs === 0 ? 'no longer works' : `works until ${formatTime(store.now() + graceMs)} at the latest`
  print(
    deps.output,
    presentNewKey(replaced),
    () => `${key}\n\nid ${record.id}. The key is shown only this once. The old key ${id} ${old}.`,
  )
}

const afterCreate = (record: KeyRecord, slug: string): string =>
  `id ${record.id}, app ${slug}. The key is shown only this once.

Next, in the app's environment:
  POSTERN_DELIVERY_KEY=the key above
  POSTERN_BASE_URL=the address of the API, e.g. http://127.0.0.1:4020
and to see a first email: postern send-test you@example.com --app ${slug}`

function statusOf(key: KeyRecord, nowMs: number): string {
  if (key.revokedAt !== null) return `revoked ${formatTime(key.revokedAt)}`
  if (key.expiresAt === null) return 'active'
  return key.expiresAt <= nowMs
    ? `expired ${formatTime(key.expiresAt)}`
    : `active until ${formatTime(key.expiresAt)}`
}

async function list(deps: CliDeps, store: Store, appName: string): Promise<void> {
  const app = unwrap(await findApp(store, appName))
  const keys = await store.listKeys(app.id)
  print(deps.output, keys.map(presentKey), () => {
    if (keys.length === 0) return `no keys yet; "postern key create ${app.slug}" makes one`
    const rows = keys.map((key) => [
      key.id,
      key.name,
      statusOf(key, store.now()),
      formatTime(key.createdAt),
      formatTime(key.lastUsedAt),
    ])
    return table(['id', 'name', 'status', 'created', 'last used'], rows)
  })
}

async function revoke(deps: CliDeps, store: Store, id: string): Promise<void> {
  const key = unwrap(await revokeKey(store, id))
  print(deps.output, presentKey(key), () => `revoked ${key.id}`)
}
