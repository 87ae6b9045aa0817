/** `postern email …`: what became of single emails, and what an operator can do with one. */
import { Option } from 'commander'
import { keepDays } from '../domain/bounds.ts'
import { counted } from '../domain/counts.ts'
import { type EmailState, emailStates, isWaiting } from '../domain/delivery/states.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import { listAll } from '../management/list-all.ts'
import type { EmailResource } from '../management/resources.ts'
import type { SuppressionResource } from '../management/suppressions/suppressions.ts'
import { type CommandGroup, command, given, option } from './command.ts'
import type { CommandContext } from './context.ts'
import { emailTypeOption, limitOption, pastOption } from './options.ts'
import { formatTime, formatTimeAndAge, listing, record, UsageError } from './output.ts'

type Filters = { app?: string; key?: string; test?: 'true'; type?: EmailType; state?: EmailState; since?: string }
type ListOptions = Omit<Filters, 'test'> & { to?: string; limit: number; test?: true }

const list = command({
  use: 'list',
  about: 'list emails, newest first',
  options: [
    option('--app <app>', 'filter by app'),
    new Option('--state <state>', 'filter by state').choices(emailStates),
    option('--to <address>', 'filter by recipient'),
    option('--key <key>', 'filter by the id of the delivery key'),
    option('--test', 'the emails of test keys, which are left out otherwise'),
    emailTypeOption(),
    pastOption('--since', 'accepted since: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp'),
    limitOption(),
  ],
  examples: ['postern email list --to ana@example.com'],
  async run(context, _, { limit, test, to, ...others }: ListOptions) {
    const filters: Filters = { ...others, ...(test && { test: 'true' }) }
    const found = to === undefined ? null : await find(context, { ...filters, to }, limit)
    const emails = found?.items ?? (await listAll(context.call, 'email.list', { query: filters }, limit))
    const { slugs } = await context.call('app.names', {})
    return { emails, slugs, suppressions: found?.suppressions ?? [] }
  },
  document: ({ emails }) => emails,
  show({ emails, slugs, suppressions }, _, options) {
    const shown = listing(emails, describeNone(options), {
      id: ({ id }) => id,
      app: ({ app }) => slugs[app] ?? app,
      type: ({ type }) => type,
      state: ({ state }) => state,
      attempts: ({ attempts }) => attempts,
      accepted: ({ acceptedAt }) => formatTime(acceptedAt),
      'last reply': (email) => describeResult(email),
    })
    return `${shown}${describeSuppressed(suppressions, slugs)}`
  },
})

const show = command({
  use: 'show <email>',
  about: 'show one email, what happened to it, and its attempts',
  examples: ['postern email show em_…'],
  async run({ call }, [id]) {
    const email = await call('email.show', { params: { email: id } })
    const { slugs } = await call('app.names', {})
    return { email, app: slugs[email.app] ?? email.app }
  },
  document: ({ email }) => email,
  show({ app, email }) {
    const hint = isWaiting(email) ? '\n"postern status" says whether mail is being sent.' : ''
    const summary = record([
      ['id', email.id],
      ['app', app],
      ['key', email.key ?? 'none: sent to try the app'],
      ['test', email.test ? 'yes: nothing of it is real' : null],
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
    const attempts = listing(email.trail, '', {
      at: ({ at }) => formatTime(at),
      outcome: ({ outcome }) => (outcome === 'unattempted' ? 'not tried' : outcome.replaceAll('_', ' ')),
      by: ({ relay, source }) => relay ?? (source === undefined ? null : `a report (${source})`),
      reply: ({ reply }) => reply ?? null,
    })
    return [`${email.explanation}${hint}`, summary, attempts].filter(Boolean).join('\n\n')
  },
})

const describeState = ({ id, state }: EmailResource): string => `${id} is ${state}`

const retry = command({
  use: 'retry [email]',
  about: 'retry a deferred email now, or all of them with --all',
  options: [option('--all', 'every deferred email'), option('--app <app>', 'with --all: only the emails of this app')],
  examples: ['postern email retry em_…', 'postern email retry --all --app acme'],
  async run({ call }, [id]: readonly [string | undefined], { all = false, app }: { all?: boolean; app?: string }) {
    if (all === (id !== undefined)) throw new UsageError('give the id of an email (em_…), or --all')
    if (id !== undefined && app !== undefined) throw new UsageError('--app needs --all')
    if (id !== undefined) return call('email.retry', { params: { email: id } })
    let retried = 0
    for (let complete = false; !complete; ) {
      const part = await call('email.retry_all', { body: given({ app }) })
      retried += part.retried
      complete = part.complete || part.retried === 0
    }
    return { retried }
  },
  show: (answer) =>
    'retried' in answer
      ? `${counted(answer.retried, 'deferred email is', 'deferred emails are')} due now; mail that is queued needs no retry`
      : describeState(answer),
})

const cancel = command({
  use: 'cancel <email>',
  about: 'cancel a queued email and delete its content',
  examples: ['postern email cancel em_…'],
  run: ({ call }, [email]) => call('email.cancel', { params: { email } }),
  show: describeState,
})

export const emailCommands: CommandGroup = {
  name: 'email',
  about: 'find out what happened to an email',
  commands: [list, show, retry, cancel],
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
async function find(context: CommandContext, { to, ...filters }: Filters & { to: string }, limit: number) {
  const body = { ...filters, to, limit: Math.min(200, limit) }
  const { recipient, items, next } = await context.call('email.find', { body })
  const { items: suppressions } = await context.call('suppression.list', { query: { recipient } })
  if (next === null || items.length >= limit) return { items, suppressions }
  const query = { ...filters, recipient, cursor: next }
  const more = await listAll(context.call, 'email.list', { query }, limit - items.length)
  return { items: [...items, ...more], suppressions }
}

/** An email that was refused leaves no record: say where refusals are listed. */
function describeNone({ app, state, to }: Partial<ListOptions>): string {
  const filters = [to && ` for ${to}`, app && ` from ${app}`].filter(Boolean).join('')
  const none = `no emails${state ? ` in the state ${state}` : ' accepted'}${filters} in the last ${keepDays} days`
  return `${none}; "postern refusal list ${app ?? 'APP'}" lists refused requests`
}
