/** `postern email …`: what became of single emails, and what an operator can do with one. */

import { type Command, Option } from 'commander'
import { keepDays } from '../domain/bounds.ts'
import { counted } from '../domain/counts.ts'
import { type EmailState, emailStates, isWaiting } from '../domain/delivery/states.ts'
import { type EmailType, emailTypes } from '../domain/request/email-request.ts'
import type { EmailDetail } from '../management/emails/email-detail.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { EmailResource } from '../management/resources.ts'
import type { SuppressionResource } from '../management/suppressions/suppression-resource.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { parseLimit } from './options.ts'
import { formatTime, formatTimeAndAge, print, record, table, UsageError } from './output.ts'
import { parsePastTime } from './time.ts'

type RetryOptions = { all?: boolean; app?: string }
type ListOptions = {
  app?: string
  key?: string
  type?: EmailType
  state?: EmailState
  to?: string
  since?: string
  limit: number
}

export function addEmailCommands(program: Command, deps: CliDeps): void {
  const email = program.command('email').description('find out what happened to an email')
  email
    .command('list')
    .description('list emails, newest first')
    .option('--app <app>', 'filter by app')
    .addOption(new Option('--state <state>', 'filter by state').choices(emailStates))
    .option('--to <address>', 'filter by recipient')
    .option('--key <key>', 'filter by the id of the delivery key')
    .addOption(new Option('--type <type>', 'filter by type').choices(emailTypes))
    .option(
      '--since <date>',
      'accepted since: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp',
      (text) => parsePastTime(text, '--since'),
    )
    .option('--limit <n>', 'maximum rows', parseLimit, 50)
    .addHelpText('after', '\nExample:\n  postern email list --to ana@example.com')
    .action((options: ListOptions) => withOperations(deps, (context) => list(deps, context, options)))
  email
    .command('show <email>')
    .description('show one email, what happened to it, and its attempts')
    .action((id: string) => withOperations(deps, (context) => show(deps, context, id)))
  email
    .command('retry [email]')
    .description('retry a deferred email now, or all of them with --all')
    .option('--all', 'every deferred email')
    .option('--app <app>', 'with --all: only the emails of this app')
    .addHelpText('after', '\nExample:\n  postern email retry --all --app acme')
    .action((id: string | undefined, options: RetryOptions) =>
      withOperations(deps, (context) => retry(deps, context, id, options)),
    )
  email
    .command('cancel <email>')
    .description('cancel a queued email and delete its content')
    .action((id: string) =>
      withOperations(deps, async ({ call }) =>
        printState(deps, await call('email.cancel', { params: { email: id } })),
      ),
    )
}

async function list(deps: CliDeps, context: CommandContext, options: ListOptions): Promise<void> {
  const { app, key, type, state, to, since, limit } = options
  const filters = {
    ...(app && { app }),
    ...(key && { key }),
    ...(type && { type }),
    ...(state && { state }),
    ...(since && { since }),
  }
  const found = to === undefined ? null : await find(context, { ...filters, to }, limit)
  const emails = found?.items ?? (await listAll(context.call, 'email.list', { query: filters }, limit))
  const { slugs } = await context.call('app.names', {})
  const note = describeSuppressed(found?.suppressions ?? [], slugs)
  print(deps.output, emails, () => {
    if (emails.length === 0) return `${describeNone(options)}${note}`
    const rows = emails.map((email) => [
      email.id,
      slugs[email.app] ?? email.app,
      email.type,
      email.state,
      email.attempts,
      formatTime(email.acceptedAt),
      describeResult(email).slice(0, 60),
    ])
    return `${table(['id', 'app', 'type', 'state', 'attempts', 'accepted', 'last reply'], rows)}${note}`
  })
}

/** An email is cancelled for its reason, whatever a relay said before. */
const describeResult = ({ lastReply, reason, state }: EmailResource): string =>
  (state === 'cancelled' ? reason : (lastReply ?? reason)) ?? ''

/** Why the next email to the address would not be sent. */
const describeSuppressed = (
  suppressions: readonly SuppressionResource[],
  slugs: Readonly<Record<string, string>>,
): string =>
  suppressions
    .map(({ id, app, until, invitationsUntil, reason }) => {
      const mail = Date.parse(until) > Date.now() ? 'mail' : 'invitations'
      const whose = `${mail} of ${app === null ? 'all apps' : (slugs[app] ?? app)}`
      return `\n\nThis address is suppressed for ${whose} (${reason}) until ${formatTime(mail === 'mail' ? until : invitationsUntil)}.\n"postern suppression remove ${id}" ends that.`
    })
    .join('')

/** The first page by the address, which is audited once; further ones by the name of the recipient. */
async function find(
  context: CommandContext,
  { to, ...filters }: { to: string } & Record<string, string>,
  limit: number,
) {
  const body = { ...filters, to, limit: Math.min(200, limit) }
  const { recipient, items, next } = await context.call('email.find', { body })
  const { items: suppressions } = await context.call('suppression.list', { query: { recipient } })
  if (next === null || items.length >= limit) return { items, suppressions }
  const query = { ...filters, recipient, cursor: next }
  const more = await listAll(context.call, 'email.list', { query }, limit - items.length)
  return { items: [...items, ...more], suppressions }
}

/** An email that was refused leaves no record: say where refusals are listed. */
function describeNone({ app, state, to }: ListOptions): string {
  const filters = [to && ` for ${to}`, app && ` from ${app}`].filter(Boolean).join('')
  const none = `no emails${state ? ` in the state ${state}` : ' accepted'}${filters} in the last ${keepDays} days`
  return `${none}; "postern refusal list ${app ?? 'APP'}" lists refused requests`
}

async function show(deps: CliDeps, { call }: CommandContext, id: string): Promise<void> {
  const email = await call('email.show', { params: { email: id } })
  const hint = isWaiting(email) ? '\n"postern status" says whether mail is being sent.' : ''
  const { slugs } = await call('app.names', {})
  const app = slugs[email.app] ?? email.app
  print(deps.output, email, () => `${email.explanation}${hint}\n\n${describe(email, app)}`)
}

function describe(email: EmailDetail, app: string): string {
  const summary = record([
    ['id', email.id],
    ['app', app],
    ['key', email.key ?? 'none: a test email'],
    ['type', email.type],
    ['state', email.state],
    ['reason', email.reason],
    ['attempts', email.attempts],
    ['lost leases', email.lostLeases === 0 ? null : email.lostLeases],
    ['accepted', formatTimeAndAge(email.acceptedAt)],
    ['link expires', formatTimeAndAge(email.expiresAt)],
    ['next attempt', formatTimeAndAge(email.nextAttemptAt)],
    ['finished', formatTimeAndAge(email.finishedAt)],
  ])
  if (email.trail.length === 0) return summary
  const rows = email.trail.map(({ at, outcome, relay, reply, source }) => [
    formatTime(at),
    outcome === 'unattempted' ? 'not tried' : outcome.replaceAll('_', ' '),
    relay ?? (source === undefined ? null : `a report (${source})`),
    reply ?? null,
  ])
  return `${summary}\n\n${table(['at', 'outcome', 'by', 'reply'], rows)}`
}

async function retry(
  deps: CliDeps,
  { call }: CommandContext,
  id: string | undefined,
  { all = false, app }: RetryOptions,
): Promise<void> {
  if (all === (id !== undefined)) throw new UsageError('give the id of an email (em_…), or --all')
  if (id !== undefined && app !== undefined) throw new UsageError('--app needs --all')
  if (id !== undefined) return printState(deps, await call('email.retry', { params: { email: id } }))
  let retried = 0
  for (let complete = false; !complete; ) {
    const part = await call('email.retry_all', { body: { ...(app && { app }) } })
    retried += part.retried
    complete = part.complete || part.retried === 0
  }
  print(
    deps.output,
    { retried },
    () =>
      `${counted(retried, 'deferred email is', 'deferred emails are')} due now; mail that is queued needs no retry`,
  )
}

const printState = (deps: CliDeps, email: EmailResource): void =>
  print(deps.output, email, () => `${email.id} is ${email.state}`)
