/** `postern key …`: delivery keys. A key is shown once, when it is made. */
import type { Command } from 'commander'
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import type { KeyId } from '../domain/id.ts'
import { parseTimestamp } from '../domain/request/timestamp.ts'
import type { KeyRecord, Store } from '../store/store.ts'
import { type CliDeps, requireApp, withStore } from './context.ts'
import { CommandFailed, iso, isoOrNull, moment, print, table, UsageError } from './output.ts'

export function addKeyCommands(program: Command, deps: CliDeps): void {
  const key = program.command('key').description('create, list and revoke delivery keys')
  key
    .command('create <app>')
    .description('make a key; it is shown once')
    .option('--name <name>', 'what the key is for')
    .option('--expires <date>', 'when it ends: 2027-01-31 or an ISO 8601 timestamp', parseExpires)
    .action((app: string, flags: { name?: string; expires?: number }) =>
      withStore(deps, (store) => create(deps, store, { app, ...flags })),
    )
  key
    .command('list <app>')
    .description('the keys of an app')
    .action((app: string) => withStore(deps, (store) => list(deps, store, app)))
  key
    .command('revoke <key>')
    .description('end a key by its id; holds for the next request')
    .action((id: string) => withStore(deps, (store) => revoke(deps, store, id)))
}

function parseExpires(text: string): number {
  const moment = parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text, '--expires')
  if (moment.ok) return moment.value
  throw new UsageError(`--expires: ${moment.issues[0]?.message}`)
}

async function create(
  deps: CliDeps,
  store: Store,
  flags: { app: string; name?: string; expires?: number },
): Promise<void> {
  const app = await requireApp(store, flags.app)
  if (flags.expires !== undefined && flags.expires <= store.now())
    throw new CommandFailed('--expires is in the past')
  const key = newDeliveryKey()
  const made = await store.createKey({
    app: app.id,
    hash: hashDeliveryKey(key),
    name: flags.name ?? null,
    expiresAt: flags.expires ?? null,
  })
  const document = {
    id: made.id,
    key,
    app: app.id,
    name: made.name,
    createdAt: iso(made.createdAt),
    expiresAt: isoOrNull(made.expiresAt),
  }
  print(
    deps.output,
    document,
    () => `${key}\n\nid ${made.id}, app ${app.slug}. This is the only time the key is shown.`,
  )
}

const present = (key: KeyRecord) => ({
  ...key,
  createdAt: iso(key.createdAt),
  expiresAt: isoOrNull(key.expiresAt),
  revokedAt: isoOrNull(key.revokedAt),
  lastUsedAt: isoOrNull(key.lastUsedAt),
})

function statusOf(key: KeyRecord, nowMs: number): string {
  if (key.revokedAt !== null) return `revoked ${moment(key.revokedAt)}`
  if (key.expiresAt === null) return 'active'
  return key.expiresAt <= nowMs ? `expired ${moment(key.expiresAt)}` : `active until ${moment(key.expiresAt)}`
}

async function list(deps: CliDeps, store: Store, appName: string): Promise<void> {
  const app = await requireApp(store, appName)
  const keys = await store.listKeys(app.id)
  print(deps.output, keys.map(present), () => {
    if (keys.length === 0) return `no keys yet; "postern key create ${app.slug}" makes one`
    const rows = keys.map((key) => [
      key.id,
      key.name,
      statusOf(key, store.now()),
      moment(key.createdAt),
      moment(key.lastUsedAt),
    ])
    return table(['id', 'name', 'status', 'created', 'last used'], rows)
  })
}

async function revoke(deps: CliDeps, store: Store, id: string): Promise<void> {
  const key = await store.revokeKey(id as KeyId)
  if (key === null)
    throw new CommandFailed(`there is no key "${id}"; give its id (key_…), as "postern key list" shows it`)
  print(deps.output, present(key), () => `revoked ${key.id}`)
}
