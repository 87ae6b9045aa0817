/** `postern suppression …`: recipients that get no mail for a while. */
import { Option } from 'commander'
import { counted } from '../domain/counts.ts'
import { type SuppressionReason, suppressionReasons } from '../domain/delivery/states.ts'
import { type Destination, destinations } from '../domain/delivery/suppression.ts'
import { listAll } from '../management/list-all.ts'
import type { Answer } from '../management/operations.ts'
import type { SuppressionResource } from '../management/suppressions/suppressions.ts'
import { type CommandGroup, command, given, option } from './command.ts'
import type { Call } from './context.ts'
import { confirm, limitOption, numberParser, pastOption, yesOption } from './options.ts'
import { formatTime, listing, UsageError } from './output.ts'

type Filters = { app?: string; reason?: SuppressionReason; destination?: Destination }

const filterOptions = () => [
  option('--app <app>', 'filter by app'),
  new Option('--reason <reason>', 'filter by reason').choices(suppressionReasons),
  new Option('--destination <provider>', 'filter by mail provider').choices(destinations),
]

/** With the slugs of apps, for people. */
type Shown = { readonly items: readonly SuppressionResource[]; readonly slugs: Answer<'app.names'>['slugs'] }

const withSlugs = async (call: Call, items: readonly SuppressionResource[]): Promise<Shown> => ({
  items,
  slugs: (await call('app.names', {})).slugs,
})

function describe({ items, slugs }: Shown, none: string): string {
  const table = listing(items, none, {
    id: ({ id }) => id,
    app: ({ app }) => (app === null ? 'all' : (slugs[app] ?? app)),
    reason: ({ reason }) => reason,
    until: ({ until }) => formatTime(until),
    'invitations until': ({ invitationsUntil, until }) =>
      invitationsUntil === until ? '' : formatTime(invitationsUntil),
    destination: ({ destination }) => destination,
    email: ({ email }) => email ?? '',
    reply: ({ reply }) => (reply ?? '').slice(0, 60),
  })
  return items.length === 0 ? table : `${table}\n\n"postern suppression remove ID" ends one.`
}

const list = command({
  use: 'list',
  about: 'list suppressions, newest first',
  options: [...filterOptions(), limitOption()],
  examples: ['postern suppression list --reason complaint'],
  run: async ({ call }, _, { limit, ...filters }: Filters & { limit: number }) =>
    withSlugs(call, await listAll(call, 'suppression.list', { query: filters }, limit)),
  document: ({ items }) => items,
  show: (shown) => describe(shown, 'no recipients are suppressed'),
})

const find = command({
  use: 'find <address>',
  about: 'say whether an address is suppressed, why, and until when',
  examples: ['postern suppression find ana@example.com'],
  run: async ({ call }, [to]) => withSlugs(call, (await call('suppression.find', { body: { to } })).items),
  document: ({ items }) => items,
  show: (shown) => describe(shown, 'not suppressed in the apps that you can see'),
})

const add = command({
  use: 'add <address>',
  about: 'suppress an address: mail to it is accepted and not sent',
  options: [
    option('--app <app>', 'mail of this app'),
    option('--all-apps', 'mail of all apps'),
    option('--days <n>', 'for so many days (default: 30)', numberParser('--days', ' of days')),
  ],
  examples: ['postern suppression add ana@example.com --app acme --days 7'],
  run({ call }, [to], { allApps = false, app, days }: { app?: string; allApps?: boolean; days?: number }) {
    if ((app !== undefined) === allApps) throw new UsageError('give --app APP or --all-apps')
    return call('suppression.add', { body: { to, ...given({ app, days }) } })
  },
  show: ({ id, until }) => `${id}: suppressed until ${formatTime(until)}`,
})

const remove = command({
  use: 'remove <suppression>',
  about: 'end a suppression by its id: mail is sent again, and earlier bounces are forgotten',
  examples: ['postern suppression remove sp_…'],
  run: ({ call }, [suppression]) => call('suppression.remove', { params: { suppression } }),
  show: ({ id }) => `removed ${id}: mail to its recipient is sent again`,
})

const clear = command({
  use: 'clear',
  about: 'end many suppressions, after a mistake of a mail server',
  options: [
    ...filterOptions(),
    pastOption('--from', 'that began since: 10m (ago), 2h, 2027-01-31 or an ISO 8601 timestamp'),
    pastOption('--to', 'that began before'),
    yesOption(),
  ],
  notes: 'After a provider has called living mailboxes missing for two hours:',
  examples: ['postern suppression clear --reason no_mailbox --destination gmail --from 4h --to 2h'],
  async run({ call, deps }, _, { yes = false, ...body }: Filters & { from?: string; to?: string; yes?: boolean }) {
    if (Object.keys(body).length === 0) throw new UsageError('give at least one filter, such as --reason or --from')
    if (!yes)
      await confirm(deps, {
        question: 'Mail to all these recipients is sent again.\nType yes to clear their suppressions: ',
        answer: 'yes',
        none: 'nothing was cleared',
        without: 'add --yes to clear without confirmation',
      })
    let removed = 0
    let after: string | null = null
    do {
      const step: Answer<'suppression.clear'> = await call('suppression.clear', {
        body: { ...body, ...(after !== null && { after }) },
      })
      removed += step.removed
      after = step.next
    } while (after !== null)
    return { removed }
  },
  show: ({ removed }) => `${counted(removed, 'suppression')} cleared`,
})

export const suppressionCommands: CommandGroup = {
  name: 'suppression',
  about: 'recipients that get no mail for a while: their mailbox does not exist, or they complained',
  commands: [list, find, add, remove, clear],
}
