/** `postern suppression …`: recipients that get no mail for a while. */
import { type Command, Option } from 'commander'
import { counted } from '../domain/counts.ts'
import { type SuppressionReason, suppressionReasons } from '../domain/delivery/states.ts'
import { type Destination, destinations } from '../domain/delivery/suppression.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { Answer } from '../management/operations.ts'
import type { SuppressionResource } from '../management/suppressions/suppression-resource.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { parseLimit } from './options.ts'
import { CommandFailed, formatTime, print, table, UsageError } from './output.ts'
import { parsePastTime } from './time.ts'

type Filters = { app?: string; reason?: SuppressionReason; destination?: Destination }
type ListOptions = Filters & { limit: number }
type AddOptions = { app?: string; allApps?: boolean; days?: number }
type ClearOptions = Filters & { from?: string; to?: string; yes?: boolean }

const description =
  'recipients that get no mail for a while: their mailbox does not exist, or they complained'

const clearExample = `
Example, after a provider has called living mailboxes missing for two hours:
  postern suppression clear --reason no_mailbox --destination gmail --from 4h --to 2h`

export function addSuppressionCommands(program: Command, deps: CliDeps): void {
  const suppression = program.command('suppression').description(description)
  addFilters(suppression.command('list').description('list suppressions, newest first'))
    .option('--limit <n>', 'maximum rows', parseLimit, 50)
    .action((options: ListOptions) => withOperations(deps, (context) => list(deps, context, options)))
  suppression
    .command('find <address>')
    .description('say whether an address is suppressed, why, and until when')
    .action((to: string) =>
      withOperations(deps, async (context) => {
        const { items } = await context.call('suppression.find', { body: { to } })
        await show(deps, context, items, 'not suppressed in the apps that you can see')
      }),
    )
  suppression
    .command('add <address>')
    .description('suppress an address: mail to it is accepted and not sent')
    .option('--app <app>', 'mail of this app')
    .option('--all-apps', 'mail of all apps')
    .option('--days <n>', 'for so many days (default: 30)', parseDays)
    .action((to: string, options: AddOptions) =>
      withOperations(deps, (context) => add(deps, context, to, options)),
    )
  suppression
    .command('remove <suppression>')
    .description('end a suppression by its id: mail is sent again, and earlier bounces are forgotten')
    .action((id: string) =>
      withOperations(deps, async ({ call }) => {
        const removed = await call('suppression.remove', { params: { suppression: id } })
        print(deps.output, removed, () => `removed ${removed.id}: mail to its recipient is sent again`)
      }),
    )
  addFilters(
    suppression.command('clear').description('end many suppressions, after a mistake of a mail server'),
  )
    .option('--from <date>', 'that began since: 10m (ago), 2h, 2027-01-31 or an ISO 8601 timestamp', (text) =>
      parsePastTime(text, '--from'),
    )
    .option('--to <date>', 'that began before', (text) => parsePastTime(text, '--to'))
    .option('--yes', 'do not ask')
    .addHelpText('after', clearExample)
    .action((options: ClearOptions) => withOperations(deps, (context) => clear(deps, context, options)))
}

const addFilters = (command: Command): Command =>
  command
    .option('--app <app>', 'filter by app')
    .addOption(new Option('--reason <reason>', 'filter by reason').choices(suppressionReasons))
    .addOption(new Option('--destination <provider>', 'filter by mail provider').choices(destinations))

const pickFilters = ({ app, destination, reason }: Filters): Filters => ({
  ...(app && { app }),
  ...(destination && { destination }),
  ...(reason && { reason }),
})

function parseDays(text: string): number {
  const days = Number(text)
  if (Number.isInteger(days) && days > 0) return days
  throw new UsageError('--days is a whole number of days')
}

async function list(
  deps: CliDeps,
  context: CommandContext,
  { limit, ...filters }: ListOptions,
): Promise<void> {
  const items = await listAll(context.call, 'suppression.list', { query: pickFilters(filters) }, limit)
  await show(deps, context, items, 'no recipients are suppressed')
}

async function show(
  { output }: CliDeps,
  { call }: CommandContext,
  items: readonly SuppressionResource[],
  none: string,
): Promise<void> {
  const { slugs } = await call('app.names', {})
  const rows = items.map(({ id, app, reason, until, invitationsUntil, destination, email, reply }) => [
    id,
    app === null ? 'all' : (slugs[app] ?? app),
    reason,
    formatTime(until),
    invitationsUntil === until ? '' : formatTime(invitationsUntil),
    destination,
    email ?? '',
    (reply ?? '').slice(0, 60),
  ])
  const heads = ['id', 'app', 'reason', 'until', 'invitations until', 'destination', 'email', 'reply']
  print(output, items, () =>
    items.length === 0 ? none : `${table(heads, rows)}\n\n"postern suppression remove ID" ends one.`,
  )
}

async function add(
  deps: CliDeps,
  { call }: CommandContext,
  to: string,
  { app, allApps = false, days }: AddOptions,
): Promise<void> {
  if ((app !== undefined) === allApps) throw new UsageError('give --app APP or --all-apps')
  const body = { to, ...(app && { app }), ...(days && { days }) }
  const made = await call('suppression.add', { body })
  print(deps.output, made, () => `${made.id}: suppressed until ${formatTime(made.until)}`)
}

async function clear(
  deps: CliDeps,
  { call }: CommandContext,
  { from, to, yes = false, ...filters }: ClearOptions,
): Promise<void> {
  const body = { ...pickFilters(filters), ...(from && { from }), ...(to && { to }) }
  if (Object.keys(body).length === 0)
    throw new UsageError('give at least one filter, such as --reason or --from')
  if (!yes) await confirmClear(deps)
  let removed = 0
  let after: string | null = null
  do {
    const step: Answer<'suppression.clear'> = await call('suppression.clear', {
      body: { ...body, ...(after !== null && { after }) },
    })
    removed += step.removed
    after = step.next
  } while (after !== null)
  print(deps.output, { removed }, () => `${counted(removed, 'suppression')} cleared`)
}

async function confirmClear({ ask }: CliDeps): Promise<void> {
  const answer = await ask(
    'Mail to all these recipients is sent again.\nType yes to clear their suppressions: ',
  )
  if (answer === null) throw new CommandFailed('nothing was cleared: add --yes to clear without confirmation')
  if (answer.trim() !== 'yes') throw new CommandFailed('nothing was cleared')
}
