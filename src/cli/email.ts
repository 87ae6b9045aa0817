/** `postern email …`: what became of single emails, and what an operator can do with one. */
import { type Command, Option } from 'commander'
import { type EmailState, emailStates } from '../domain/delivery/states.ts'
import { cancelEmail, retryAll, retryEmail } from '../management/change-email.ts'
import { explainEmail } from '../management/explain-email.ts'
import { findApp } from '../management/find-app.ts'
import { findEmail } from '../management/find-email.ts'
import { type EmailFilter, listEmails } from '../management/list-emails.ts'
import { lastReplyOf, presentEmail, presentTrail } from '../management/present.ts'
import type { EmailRecord, Store } from '../store/store.ts'
import { type CliDeps, withStore } from './context.ts'
import { formatTime, formatTimeAndAge, print, record, table, UsageError, unwrap } from './output.ts'

type RetryOptions = { all?: boolean; app?: string }
type ListOptions = { app?: string; state?: EmailState; to?: string; limit: number }

export function addEmailCommands(program: Command, deps: CliDeps): void {
  const email = program.command('email').description('find out what became of an email')
  email
    .command('list')
    .description('list emails, newest first')
    .option('--app <app>', 'filter by app')
    .addOption(new Option('--state <state>', 'filter by state').choices(emailStates))
    .option('--to <address>', 'filter by recipient')
    .option('--limit <n>', 'maximum rows', parseLimit, 50)
    .addHelpText('after', '\nExample:\n  postern email list --to ana@example.com')
    .action((options: ListOptions) => withStore(deps, (store) => list(deps, store, options)))
  email
    .command('show <email>')
    .description('show one email, what became of it, and its attempts')
    .action((id: string) => withStore(deps, (store) => show(deps, store, id)))
  email
    .command('retry [email]')
    .description('make a deferred email due now, or with --all every one')
    .option('--all', 'every deferred email')
    .option('--app <app>', 'with --all: only the emails of this app')
    .addHelpText('after', '\nExample:\n  postern email retry --all --app acme')
    .action((id: string | undefined, options: RetryOptions) =>
      withStore(deps, (store) => retry(deps, store, id, options)),
    )
  email
    .command('cancel <email>')
    .description('cancel a queued email and delete its content')
    .action((id: string) =>
      withStore(deps, async (store) => printState(deps, unwrap(await cancelEmail(store, id)))),
    )
}

function parseLimit(value: string): number {
  const limit = Number(value)
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
    throw new UsageError('--limit is a whole number from 1 to 10000')
  return limit
}

async function list(deps: CliDeps, store: Store, filter: EmailFilter): Promise<void> {
  const { emails, nameOf } = unwrap(await listEmails(store, filter))
  print(deps.output, emails.map(presentEmail), () => {
    if (emails.length === 0) return describeNone(filter)
    const rows = emails.map((email) => [
      email.id,
      nameOf(email),
      email.type,
      email.state,
      email.attempts,
      formatTime(email.acceptedAt),
      (lastReplyOf(email) ?? email.reason ?? '').slice(0, 60),
    ])
    return table(['id', 'app', 'type', 'state', 'attempts', 'accepted', 'last reply'], rows)
  })
}

/** An email that was refused leaves no record: say where refusals are counted. */
function describeNone({ app, state, to }: EmailFilter): string {
  const filters = [to && ` for ${to}`, app && ` from ${app}`].filter(Boolean).join('')
  const none = `no emails${state ? ` in the state ${state}` : ' accepted'}${filters} in the last 30 days`
  return `${none}; requests that were refused are counted by "postern usage ${app ?? 'APP'}", and each has a line in the service's log`
}

async function show(deps: CliDeps, store: Store, id: string): Promise<void> {
  const email = unwrap(await findEmail(store, id))
  const explanation = explainEmail(email)
  const document = { ...presentEmail(email), explanation, trail: presentTrail(email) }
  print(deps.output, document, () => `${explanation}\n\n${describe(email, store.now())}`)
}

function describe(email: EmailRecord, nowMs: number): string {
  const summary = record([
    ['id', email.id],
    ['app', email.app],
    ['key', email.key],
    ['type', email.type],
    ['state', email.state],
    ['reason', email.reason],
    ['attempts', email.attempts],
    ['lost leases', email.lostLeases === 0 ? null : email.lostLeases],
    ['accepted', formatTimeAndAge(email.acceptedAt, nowMs)],
    ['link expires', formatTimeAndAge(email.expiresAt, nowMs)],
    ['next attempt', formatTimeAndAge(email.nextAttemptAt, nowMs)],
    ['finished', formatTimeAndAge(email.finishedAt, nowMs)],
  ])
  if (email.trail.length === 0) return summary
  const rows = email.trail.map(({ at, outcome, relay, reply }) => [
    formatTime(at),
    outcome === 'unattempted' ? 'not tried' : outcome,
    relay ?? null,
    reply?.text ?? null,
  ])
  return `${summary}\n\n${table(['at', 'outcome', 'relay', 'reply'], rows)}`
}

async function retry(
  deps: CliDeps,
  store: Store,
  id: string | undefined,
  { all = false, app }: RetryOptions,
): Promise<void> {
  if (all === (id !== undefined)) throw new UsageError('give the id of an email (em_…), or --all')
  if (id !== undefined && app !== undefined) throw new UsageError('--app goes with --all')
  if (id !== undefined) return printState(deps, unwrap(await retryEmail(store, id)))
  const found = app === undefined ? null : unwrap(await findApp(store, app))
  const retried = await retryAll(store, found?.id ?? null)
  print(
    deps.output,
    { retried },
    () => `${retried} deferred ${retried === 1 ? 'email is' : 'emails are'} due now`,
  )
}

const printState = (deps: CliDeps, email: EmailRecord): void =>
  print(deps.output, presentEmail(email), () => `${email.id} is ${email.state}`)
