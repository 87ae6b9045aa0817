/** `postern backup`, `restore` and `copy`: the database as a whole. */
import { parseDatabaseUrl } from '../config/database-url.ts'
import type { Config } from '../config/parse-config.ts'
import { counted, describeBytes, formatCount } from '../domain/counts.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import type { DatabaseFacts, Found, FoundByKind, Restored } from '../store/database-facts.ts'
import { type CommandSpec, option } from './command.ts'
import { type CliDeps, commandConfig } from './context.ts'
import { readSecretFile } from './global-options.ts'
import { print, UsageError } from './output.ts'

export const backupCommand: CommandSpec = {
  use: 'backup <file>',
  about: 'copy the SQLite database into FILE while the service runs; "-" is standard output',
  notes: `The file holds every email that was accepted before the command began. It appears once it is complete, and
never replaces another file. With the Debian package, name a file below /var/lib/postern, or redirect "-".`,
  examples: ['postern backup /var/lib/postern/backup.db'],
  act: (deps, [file = '']) => backup(deps, file),
}

export const restoreCommand: CommandSpec = {
  use: 'restore <file>',
  about: 'replace the SQLite database with a backup; the service must be stopped',
  options: [option('--cancel-queued', 'cancel the emails that were queued when the backup was made')],
  notes: `The backup is checked first, and needs the key ring (POSTERN_SECRET_KEYS) that it was made with. The current
database is kept under another name. If the backup was made from it, what has changed since is carried over: access that ended,
settings of apps, secrets, suppressions, records. Mail that was queued in the backup is sent, unless it is known to have ended,
or its link has expired. Sessions, invitations and sign-in links end. The output lists what was carried over and what is lost.
FILE is read by the service's user; "-" is standard input.`,
  examples: ['systemctl stop postern && postern restore /var/lib/postern/backup.db && systemctl start postern'],
  act: (deps, [file = ''], { cancelQueued = false }: { cancelQueued?: boolean }) => restore(deps, file, cancelQueued),
}

export const copyCommand: CommandSpec = {
  use: 'copy',
  about: 'copy the SQLite database to a new one on PostgreSQL; the service must be stopped',
  options: [
    option(
      '--to <url>',
      'postgres://user@host/database, or file:PATH of a file that holds a URL with a password',
    ).makeOptionMandatory(),
  ],
  notes: `POSTERN_DATABASE_URL is the SQLite database; change it after the copy. The target must have no Postern schema
yet. Apps keep their keys. The old database file is renamed.`,
  examples: ['systemctl stop postern && postern copy --to file:/var/lib/postern/target-url'],
  act: (deps, _, { to = '' }: { to?: string }) => copy(deps, to),
}

async function backup(deps: CliDeps, file: string): Promise<void> {
  if (file === '-' && process.stdout.isTTY)
    throw new UsageError('"-" writes the database to standard output: redirect it to a file')
  const config = commandConfig(deps)
  const facts = await deps.backUp(config, file === '-' ? process.stdout : file)
  await noteBackup(deps, config, facts).catch((error: Error) =>
    deps.output.err(`postern: the backup is complete, but the console cannot show it: ${error.message}`),
  )
  const text = `${describe(file === '-' ? 'the backup' : file, facts)}
To restore it, POSTERN_SECRET_KEYS must hold ${describeKeys(facts.keyIds)}. Keep the key ring elsewhere.`
  if (file === '-') deps.output.err(text)
  else print(deps.output, { file, ...facts }, () => text)
}

/** In the database itself, so that the service shows when its last backup was made. */
async function noteBackup({ openStore }: CliDeps, config: Config, { bytes }: DatabaseFacts): Promise<void> {
  const store = await openStore(config, 'open')
  try {
    await store.keepCheck('backup', { bytes })
  } finally {
    await store.close()
  }
}

async function restore(deps: CliDeps, file: string, cancelQueued: boolean): Promise<void> {
  const facts = await deps.restore(commandConfig(deps), file === '-' ? null : file, { cancelQueued })
  print(deps.output, { file, cancelled: cancelQueued, ...facts }, () => {
    const { previous, missingKeyIds } = facts
    const lines = [
      `restored ${describe(file === '-' ? 'the backup' : file, facts)}`,
      previous === null ? '' : `The previous database is now ${previous}. Delete it when you no longer need it.`,
      describeComparison(facts),
      describeQueued(facts, cancelQueued),
      missingKeyIds.length === 0
        ? ''
        : `POSTERN_SECRET_KEYS lacks ${describeKeys(missingKeyIds)}: mail sealed with a missing key waits for that key until its link expires.`,
      'Next: start the service.',
    ]
    return lines.filter((line) => line !== '').join('\n')
  })
}

function describe(file: string, { bytes, schema, apps, queued }: DatabaseFacts): string {
  return `${file}: ${describeBytes(bytes)}, schema ${schema}, ${counted(apps, 'app')}, ${counted(queued, 'email')} queued`
}

const describeKeys = (ids: readonly string[]): string =>
  `the ${ids.length === 1 ? 'key' : 'keys'} ${ids.map((id) => `"${id}"`).join(', ')}`

const namesMax = 20

/** `leaked (key_…), stolen (key_…), and 3 more`, or `5 added, 1 removed`; nothing for what is empty. */
function describeFound(found: Found): string {
  if (!Array.isArray(found)) {
    const counts = Object.entries(found).filter(([, value]) => value > 0)
    return counts.map(([what, value]) => `${formatCount(value)} ${what}`).join(', ')
  }
  const more = found.length > namesMax ? `, and ${found.length - namesMax} more (--json lists them)` : ''
  return `${found.slice(0, namesMax).join(', ')}${more}`
}

/** A line for each kind of which something was found. */
const listKinds = (byKind: FoundByKind): string[] =>
  Object.entries(byKind)
    .map(([kind, found]) => [kind, describeFound(found)])
    .filter(([, text]) => text !== '')
    .map(([kind, text]) => `  ${kind}: ${text}`)

function describeComparison({ asInBackup, carried, lost, notCompared, works }: Restored): string {
  const ended = 'Sessions, invitations and sign-in links have ended.'
  if (carried === null)
    return `Nothing could be compared, because ${notCompared}. Settings are as in the backup, suppressions made since are lost, and all of this works again. Revoke, disable or correct anything that should not:
${listKinds(works).join('\n') || '  nothing'}
${ended}`
  const [kept, gone] = [listKinds(carried), listKinds(lost)]
  const isSame = (kind: string) => describeFound(carried[kind] ?? []) === '' && describeFound(lost[kind] ?? []) === ''
  const same = Object.keys(carried).filter(isSame)
  return [
    ...(kept.length === 0
      ? []
      : ['Changed since the backup; the restored database has it as the previous one:', ...kept]),
    ...(gone.length === 0 ? [] : ['Made or given since the backup, and lost:', ...gone]),
    ...(same.length === 0 ? [] : [`Compared, without a change since the backup: ${same.join(', ')}.`]),
    `Not compared, and as in the backup: ${asInBackup.join(', ')}.`,
    ended,
  ].join('\n')
}

function describeQueued({ carried, queued, toSend, waiting }: Restored, cancelled: boolean): string {
  if (queued === 0) return ''
  const ended =
    waiting === queued
      ? ''
      : `Of the ${counted(queued, 'email')} queued in the backup, ${formatCount(queued - waiting)} ended since, and will not be sent again. `
  if (cancelled) return `${ended}Cancelled ${counted(waiting, 'email')} queued in the backup.`
  if (waiting === 0) return ended.trim()
  const again = `The service will send ${counted(toSend, 'email')} queued in the backup${carried === null ? ', including any already sent since' : ''}.`
  const expired = waiting - toSend
  const expiredNote = expired === 0 ? '' : ` Another ${expired} will not be sent: the link has expired.`
  return `${ended}${again}${expiredNote} To send none, restore again with --cancel-queued before you start it.`
}

async function copy(deps: CliDeps, to: string): Promise<void> {
  const target = parseTarget(to)
  const { copied, previous } = await deps.copy(commandConfig(deps), target)
  const { app, delivery_key, queue, history } = copied
  print(deps.output, { copied, previous }, () =>
    [
      `copied ${counted(app, 'app')}, ${counted(delivery_key, 'delivery key')}, ${counted(queue, 'queued email')} and ${counted(history, 'record')}`,
      'Rate limits for recipients and keys start unused; sessions, invitations and sign-in links are not copied.',
      'Next: set POSTERN_DATABASE_URL to the new database, with the same POSTERN_SECRET_KEYS, then: postern serve.',
      `The old database is now ${previous}. Start no service on it: it would send the queued mail again.`,
    ].join('\n'),
  )
}

/** Other users of the machine see command lines, so a password is taken from a file. */
function parseTarget(to: string): PostgresAddress {
  const file = /^file:(.+)$/.exec(to)?.[1]
  const parsed = parseDatabaseUrl(file === undefined ? to : readSecretFile(file, '--to').trim())
  if (!('engine' in parsed)) throw new UsageError(`--to: ${parsed.fault}`)
  if (parsed.engine !== 'postgres') throw new UsageError('--to must be a postgres:// URL')
  if (file === undefined && parsed.password !== '') {
    throw new UsageError(
      '--to: other users can see a password on the command line; put the URL in a file that only this user can read, and use --to file:PATH',
    )
  }
  return parsed
}
