/** `postern key …`: delivery keys. A key is shown once, when it is created. */
import { simulatedOutcomes, testDomain } from '../domain/app/test-side.ts'
import { hasEnded } from '../domain/bearer.ts'
import { listAll } from '../management/list-all.ts'
import type { KeyResource } from '../management/resources.ts'
import { type CommandGroup, command, given, option, repeatable } from './command.ts'
import { expiresOption, graceOption, parseTime } from './options.ts'
import { formatTime, listing, record, UsageError } from './output.ts'

const nameOption = () => option('--name <name>', 'where the key is used, e.g. production')

/** More than any key has. */
const keyCharactersMax = 200

type KeyOptions = { name?: string; expires?: string; network?: string[]; test?: true }

const create = command({
  use: 'create <app>',
  about: 'create a key; it is shown once',
  options: [
    nameOption(),
    expiresOption('when the key expires: 2027-01-31 or an ISO 8601 timestamp'),
    repeatable('--network <network>', 'a network or address that may use the key (may be repeated; default: all)'),
    option('--test', `make a test key: it sends only to ${testDomain}, and nothing leaves the service`),
  ],
  examples: ['postern key create acme --name production', 'postern key create acme --network 192.0.2.0/24'],
  run: ({ call }, [app], { expires: expiresAt, name, network: networks, test }: KeyOptions) =>
    call('key.create', { params: { app }, body: given({ name, expiresAt, networks, test }) }),
  show: ({ apiUrl, id, key, test }, [app]) => `${key}

id ${id}, app ${app}. The key is shown only this once.

Next, in the app's environment:
  POSTERN_DELIVERY_KEY=the key above
  POSTERN_BASE_URL=${apiUrl ?? 'the address of the API (set POSTERN_API_URL to see it here)'}
${test ? `and send to OUTCOME@${testDomain}: ${simulatedOutcomes.join(', ')}` : `and to see a first email: postern send-test YOUR@ADDRESS --app ${app}`}`,
})

const list = command({
  use: 'list <app>',
  about: 'list the keys of an app',
  examples: ['postern key list acme'],
  run: ({ call }, [app]) => listAll(call, 'key.list', { params: { app } }),
  show: (keys, [app]) =>
    listing(keys, `no keys yet; "postern key create ${app}" makes one`, {
      id: ({ id }) => id,
      name: ({ name }) => name,
      status: (key) => `${key.test ? 'test key, ' : ''}${describeStatus(key, keys)}`,
      created: ({ createdAt }) => formatTime(createdAt),
      'last used': ({ lastUsedAt }) => formatTime(lastUsedAt),
    }),
})

const show = command({
  use: 'show <key>',
  about: 'show the record of one key',
  examples: ['postern key show key_…'],
  run: ({ call }, [key]) => call('key.show', { params: { key } }),
  show: describe,
})

const find = command({
  use: 'find',
  about: 'show the record of a leaked key, read from standard input',
  examples: ['grep -o "pst_[0-9A-Za-z]*" app.log | head -1 | postern key find'],
  async run({ call, deps }) {
    const key = (await deps.ask('The key: ')) ?? (await deps.readInput(keyCharactersMax))
    return call('key.find', { body: { key: key.trim() } })
  },
  show: describe,
})

const update = command({
  use: 'update <key>',
  about: "change a key's name, expiry or networks",
  options: [
    nameOption(),
    option('--expires <date>', "when the key expires; '' for never", (text) =>
      text === '' ? '' : parseTime(text, '--expires'),
    ),
    repeatable(
      '--network <network>',
      "a network or address that may use the key, instead of those so far (may be repeated); '' for all",
    ),
  ],
  examples: ['postern key update key_… --expires 2027-01-31', 'postern key update key_… --network 192.0.2.0/24'],
  run({ call }, [key], { expires, name, network }: KeyOptions) {
    const networks = network?.join() === '' ? null : network
    const body = given({ name, networks, expiresAt: expires === '' ? null : expires })
    if (Object.keys(body).length === 0) throw new UsageError('nothing to change: give --name, --expires or --network')
    return call('key.change', { params: { key }, body })
  },
  show: describe,
})

const replace = command({
  use: 'replace <key>',
  about: 'create a new key with the same app and name; the old one keeps working for a while',
  options: [
    graceOption('how long the old key keeps working', '24h'),
    expiresOption('when the new key expires (default: never, even if the old one does)'),
  ],
  examples: ['postern key replace key_… --grace 1h'],
  run: ({ call }, [key], { grace, expires: expiresAt }: { grace: number; expires?: string }) =>
    call('key.replace', {
      params: { key },
      body: { graceSeconds: grace / 1000, ...given({ expiresAt }) },
    }),
  show({ id, key, oldExpiresAt }, [replaced], { grace }) {
    const old = grace === 0 ? 'no longer works' : `works until ${formatTime(oldExpiresAt)} at the latest`
    return `${key}\n\nid ${id}. The key is shown only this once. The old key ${replaced} ${old}.`
  },
})

const revoke = command({
  use: 'revoke <key>',
  about: 'revoke a key by its id; takes effect for the next request',
  examples: ['postern key revoke key_…'],
  run: ({ call }, [key]) => call('key.revoke', { params: { key } }),
  show: ({ id }) => `revoked ${id}`,
})

export const keyCommands: CommandGroup = {
  name: 'key',
  about: 'create, list, replace and revoke delivery keys',
  commands: [create, list, show, find, update, replace, revoke],
}

function describeStatus({ id, revokedAt, expiresAt }: KeyResource, keys: readonly KeyResource[] = []): string {
  if (revokedAt !== null) return `revoked ${formatTime(revokedAt)}`
  if (expiresAt === null) return 'active'
  if (hasEnded({ revokedAt, expiresAt }, Date.now())) return `expired ${formatTime(expiresAt)}`
  const isReplaced = keys.some(({ replaces }) => replaces === id)
  return `${isReplaced ? 'replaced, works' : 'active'} until ${formatTime(expiresAt)}`
}

function describe(key: KeyResource): string {
  return record([
    ['id', key.id],
    ['app', key.app],
    ['name', key.name],
    ['test key', key.test ? 'yes' : null],
    ['status', describeStatus(key)],
    ['created', `${formatTime(key.createdAt)} by ${key.createdBy}`],
    ['networks', key.networks === null ? 'all' : key.networks.join(', ') || 'none'],
    ['replaces', key.replaces],
    ['last used', formatTime(key.lastUsedAt) ?? 'never'],
  ])
}
