/** `postern export` and `postern import`: a list as CSV, or everything as an archive. */
import type { Config } from '../config/parse-config.ts'
import { counted } from '../domain/counts.ts'
import { toCsv } from '../domain/csv.ts'
import { localAccess } from '../management/operation/access.ts'
import type { CallInput } from '../management/operations.ts'
import type { ArchivedCounts } from '../store/shared/archive.ts'
import { type CommandSpec, command, given, option } from './command.ts'
import { type CliDeps, commandConfig } from './context.ts'
import { pastOption } from './options.ts'
import { print, UsageError } from './output.ts'

type Exported = CallInput<'list.export'>['body']
type Filters = Record<string, string>
type Options = Filters & { readonly to?: string; readonly secrets?: true }

const exportList = command({
  use: 'export <list>',
  about: 'print a list as CSV, newest first: emails, refusals, suppressions or audit; "all" writes an archive',
  options: [
    option('--app <app>', 'filter by app'),
    pastOption('--since', 'since: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp; not for suppressions'),
    pastOption('--until', 'until: the same forms'),
    option('--to <file>', 'with "all": the file, which must not exist'),
    option('--secrets', 'with "all": also what gives access and what is encrypted, so that it can be imported'),
  ],
  notes: `"all" writes everything but queued mail into FILE, as lines of JSON, while the service runs. docs/backup.md describes it.`,
  examples: [
    'postern export emails --app acme --since 7d > emails.csv',
    'postern export all --secrets --to /var/lib/postern/archive.jsonl',
  ],
  run: ({ call }, [list], filters: Filters) =>
    call('list.export', {
      body: { list: list as Exported['list'], filters: given(filters) as Filters },
    }),
  document: ({ items }) => items,
  show: ({ items }) => toCsv(items, '\n').trimEnd(),
  aside: ({ complete, items }) =>
    complete ? `${items.length} items` : `the newest ${items.length} items; give --since and --until for others`,
})

export const exportCommand: CommandSpec = {
  ...exportList,
  act(deps, args, options) {
    const { to, secrets, ...filters } = options as Options
    if (args[0] === 'all') return exportAll(deps, filters, { to, secrets: secrets === true })
    if (to !== undefined || secrets !== undefined) throw new UsageError('--to and --secrets are for "export all"')
    return exportList.act(deps, args, filters)
  },
}

async function exportAll(
  deps: CliDeps,
  filters: Filters,
  { to, secrets }: { readonly to: string | undefined; readonly secrets: boolean },
): Promise<void> {
  if (to === undefined) throw new UsageError('name the file: postern export all --to FILE')
  if (Object.keys(filters).length > 0) throw new UsageError('"export all" has no filters')
  const config = commandConfig(deps)
  const depth = await noteExport(deps, config, secrets)
  const rows = await deps.exportArchive(config, to, secrets)
  print(deps.output, { file: to, secrets, rows, queued: depth }, () =>
    [
      `${to}: ${describe(rows)}`,
      depth === 0 ? '' : `Not in it: ${counted(depth, 'queued email')}. Let the service send them first if you move.`,
      secrets
        ? 'It contains credentials: protect it like the key ring, and store it separately.'
        : 'It has no secrets: add --secrets to make an archive that can be imported.',
    ]
      .filter((line) => line !== '')
      .join('\n'),
  )
}

/** Writes the audit entry, which is in the archive, too. Returns how many emails are queued. */
async function noteExport({ openStore, user }: CliDeps, config: Config, secrets: boolean): Promise<number> {
  const store = await openStore(config, 'open')
  try {
    const action = { action: 'list.export', app: null, target: 'everything', before: null, after: { secrets } } as const
    await store.recordAction(action, localAccess(user).actor)
    return (await store.readQueueGauge()).depth
  } finally {
    await store.close()
  }
}

const describe = ({ app = 0, delivery_key = 0, suppression = 0, person = 0, history = 0 }: ArchivedCounts): string =>
  [
    counted(app, 'app'),
    counted(delivery_key, 'delivery key'),
    counted(suppression, 'suppression'),
    `${person} ${person === 1 ? 'person' : 'people'}`,
    counted(history, 'record'),
  ].join(', ')

export const importCommand: CommandSpec = {
  use: 'import <file>',
  about: 'fill a new database with the archive that "export all --secrets" wrote',
  notes: `POSTERN_DATABASE_URL names the new database, on SQLite or PostgreSQL, which must have no Postern schema yet.
POSTERN_SECRET_KEYS must hold the keys of the old one.`,
  examples: ['postern import /var/lib/postern/archive.jsonl'],
  async act(deps, [file = '']) {
    const rows = await deps.importArchive(commandConfig(deps), file)
    print(deps.output, { file, rows }, () =>
      [
        `imported ${describe(rows)}`,
        'Sessions, sign-in links, idempotency keys, current limits and queued mail are not in an archive.',
        'Next: run "postern doctor", which names the keys that POSTERN_SECRET_KEYS lacks; then start the service.',
      ].join('\n'),
    )
  },
}
