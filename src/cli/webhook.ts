/** `postern webhook`: where an app is notified of emails that bounced, failed or were suppressed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { dayMs } from '../domain/duration.ts'
import type { Answer } from '../management/operations.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { parseGrace } from './key.ts'
import { CommandFailed, formatTime, print, record, table } from './output.ts'

export function addWebhookCommands(program: Command, deps: CliDeps): void {
  const webhook = program
    .command('webhook')
    .description('notify an app of emails that bounced, failed or were suppressed')
  webhook
    .command('list <app>')
    .description('show the address, the state of the receiver, and the last messages')
    .action((app: string) => withOperations(deps, (context) => list(deps, context, app)))
  webhook
    .command('secret <app>')
    .description('make the secret that signs the messages, or replace it')
    .addOption(
      new Option('--grace <time>', 'how long the old secret keeps signing: 0, 30m, 24h or 7d')
        .argParser(parseGrace)
        .default(dayMs, '1d'),
    )
    .action((app: string, { grace }: { readonly grace: number }) =>
      withOperations(deps, (context) => makeSecret(deps, context, { app, grace })),
    )
  webhook
    .command('test <app>')
    .description('send a test message, and wait for the answer of the receiver')
    .action((app: string) => withOperations(deps, (context) => test(deps, context, app)))
}

type Listed = Answer<'webhook.list'>
type Message = Listed['items'][number]

async function list(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const listed = await call('webhook.list', { params: { app } })
  print(deps.output, listed, () => {
    const { failingSince, hasSecret, items, oldSecretUntil, url } = listed
    const head = record([
      ['address', url ?? 'none'],
      ['secret', hasSecret ? 'set' : 'none'],
      ['old secret', oldSecretUntil === null ? null : `signs until ${formatTime(oldSecretUntil)}`],
      ['receiver', failingSince === null ? null : `failing since ${formatTime(failingSince)}`],
    ])
    const rows = items.map((item) => [
      ...[formatTime(item.at), item.event, item.email ?? '', describe(item), String(item.tries)],
    ])
    const next = explainNext(listed, app)
    const messages = rows.length === 0 ? '' : `\n\n${table(['at', 'event', 'email', 'state', 'tries'], rows)}`
    return `${head}${messages}${next === null ? '' : `\n\nNext: ${next}`}`
  })
}

const describe = ({ nextTryAt, result, state }: Message): string => {
  const said = result === null ? '' : ` (${result})`
  if (state !== 'waiting') return `${state === 'sent' ? 'sent' : 'given up'}${said}`
  // While its receiver fails, a message waits longer than its own turn.
  const isLater = nextTryAt !== null && Date.parse(nextTryAt) > Date.now()
  return `waiting${said}${isLater ? `, next try ${formatTime(nextTryAt)}` : ''}`
}

function explainNext({ hasSecret, items, url }: Listed, app: string): string | null {
  if (url === null) return `postern app update ${app} --webhook-url URL`
  if (!hasSecret) return `postern webhook secret ${app}`
  return items.length === 0 ? `postern webhook test ${app}` : null
}

async function makeSecret(
  deps: CliDeps,
  { call }: CommandContext,
  { app, grace }: { readonly app: string; readonly grace: number },
): Promise<void> {
  const made = await call('webhook.secret', { params: { app }, body: { graceSeconds: grace / 1000 } })
  const { oldSecretUntil, secret } = made
  const old =
    oldSecretUntil === null ? '' : ` The old secret signs as well until ${formatTime(oldSecretUntil)}.`
  print(
    deps.output,
    made,
    () => `${secret}

This is shown only now. Give it to the receiver of ${app}.${old}`,
  )
}

/** A process with the role worker sends the message. */
const waitMs = 15_000
const askEveryMs = 250

async function test(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const { id } = await call('webhook.test', { params: { app }, body: {} })
  const endMs = performance.now() + waitMs
  for (;;) {
    const { items } = await call('webhook.list', { params: { app } })
    const message = items.find((item) => item.id === id)
    if (message?.state === 'sent')
      return print(
        deps.output,
        message,
        () => `Delivered: the receiver of ${app} answered ${message.result}.`,
      )
    if (message !== undefined && message.result !== null)
      throw new CommandFailed(`the receiver of ${app} did not accept it: ${message.result}`)
    if (performance.now() > endMs)
      throw new CommandFailed('no process sent it within 15 s: is one with the role worker running?')
    await sleep(askEveryMs)
  }
}
