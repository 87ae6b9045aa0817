/** `postern email …`: what became of single emails, and the two things to do about one. */
import { type Command, Option } from 'commander'
import { type EmailState, emailStates } from '../domain/delivery/outcome.ts'
import type { EmailId } from '../domain/id.ts'
import { parseEmailAddress } from '../domain/request/email-address.ts'
import type { EmailChange, EmailRecord, Store } from '../store/store.ts'
import { type CliDeps, requireApp, withStore } from './context.ts'
import { CommandFailed, iso, isoOrNull, moment, print, record, table, UsageError } from './output.ts'

type ListFlags = { app?: string; state?: EmailState; to?: string; limit: number }

export function addEmailCommands(program: Command, deps: CliDeps): void {
  const email = program.command('email').description('find out what became of an email')
  email
    .command('list')
    .description('newest first')
    .option('--app <app>', 'of one app')
    .addOption(new Option('--state <state>', 'in one state').choices(emailStates))
    .option('--to <address>', 'to one recipient')
    .option('--limit <n>', 'at most so many', parseLimit, 50)
    .action((flags: ListFlags) => withStore(deps, (store) => list(deps, store, flags)))
  email
    .command('show <email>')
    .description('one email and its attempts')
    .action((id: string) => withStore(deps, (store) => show(deps, store, id)))
  email
    .command('retry <email>')
    .description('try a deferred email now')
    .action((id: string) =>
      withStore(deps, async (store) =>
        changed(deps, store, { id, change: await store.retryEmail(id as EmailId) }),
      ),
    )
  email
    .command('cancel <email>')
    .description('cancel a queued email and wipe it')
    .action((id: string) =>
      withStore(deps, async (store) =>
        changed(deps, store, { id, change: await store.cancelEmail(id as EmailId) }),
      ),
    )
}

function parseLimit(value: string): number {
  const limit = Number(value)
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
    throw new UsageError('--limit is a whole number from 1 to 10000')
  return limit
}

const lastReply = (email: EmailRecord): string | null =>
  email.trail.findLast((attempt) => attempt.reply !== undefined)?.reply ?? null

const present = (email: EmailRecord) => ({
  id: email.id,
  app: email.app,
  type: email.type,
  state: email.state,
  attempts: email.attempts,
  acceptedAt: iso(email.acceptedAt),
  expiresAt: iso(email.expiresAt),
  nextAttemptAt: isoOrNull(email.nextAttemptAt),
  finishedAt: isoOrNull(email.finishedAt),
  reason: email.reason,
  lastReply: lastReply(email),
})

async function list(deps: CliDeps, store: Store, flags: ListFlags): Promise<void> {
  const to = flags.to === undefined ? undefined : parseEmailAddress(flags.to, '--to')
  if (to?.ok === false) throw new UsageError(`--to: ${to.issues[0]?.message}`)
  const app = flags.app === undefined ? undefined : (await requireApp(store, flags.app)).id
  const emails = await store.listEmails({
    limit: flags.limit,
    ...(app === undefined ? {} : { app }),
    ...(flags.state === undefined ? {} : { state: flags.state }),
    ...(to === undefined ? {} : { to: to.value }),
  })
  const slugs = new Map((await store.listApps()).map(({ id, slug }) => [id, slug]))
  print(deps.output, emails.map(present), () => {
    if (emails.length === 0) return 'no such emails; records are kept for 30 days'
    const rows = emails.map((email) => [
      email.id,
      slugs.get(email.app) ?? email.app,
      email.type,
      email.state,
      email.attempts,
      moment(email.acceptedAt),
      (lastReply(email) ?? email.reason ?? '').slice(0, 60),
    ])
    return table(['id', 'app', 'type', 'state', 'attempts', 'accepted', 'last reply'], rows)
  })
}

async function requireEmail(store: Store, id: string): Promise<EmailRecord> {
  const email = await store.findEmail(id as EmailId)
  if (email === null) throw new CommandFailed(`there is no email "${id}"; records are kept for 30 days`)
  return email
}

async function show(deps: CliDeps, store: Store, id: string): Promise<void> {
  const email = await requireEmail(store, id)
  const trail = email.trail.map((attempt) => ({ ...attempt, at: iso(attempt.at) }))
  print(deps.output, { ...present(email), trail }, () => {
    const summary = record([
      ['id', email.id],
      ['app', email.app],
      ['type', email.type],
      ['state', email.state],
      ['reason', email.reason],
      ['attempts', email.attempts],
      ['accepted', moment(email.acceptedAt)],
      ['link expires', moment(email.expiresAt)],
      ['next attempt', moment(email.nextAttemptAt)],
      ['finished', moment(email.finishedAt)],
    ])
    const rows = email.trail.map((attempt) => [
      moment(attempt.at),
      attempt.outcome,
      attempt.relay ?? null,
      attempt.reply ?? null,
    ])
    return rows.length === 0 ? summary : `${summary}\n\n${table(['at', 'outcome', 'relay', 'reply'], rows)}`
  })
}

const refusals: Record<Exclude<EmailChange, 'done' | 'not_found'>, string> = {
  finished: 'it is finished and its content wiped; ask the app to send a new one',
  sending: 'it is being sent right now; look again in a moment',
  not_deferred: 'it is not deferred: it waits for a worker already',
}

async function changed(
  deps: CliDeps,
  store: Store,
  { id, change }: { id: string; change: EmailChange },
): Promise<void> {
  const email = await requireEmail(store, id)
  if (change !== 'done' && change !== 'not_found')
    throw new CommandFailed(`${id} was left as it is: ${refusals[change]}`)
  print(deps.output, present(email), () => `${email.id} is ${email.state}`)
}
