/** `postern app-webhook`: where an app is notified of emails that bounced, failed or were suppressed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer } from '../management/operations.ts'
import { type CommandGroup, command } from './command.ts'
import type { Call } from './context.ts'
import { graceOption } from './options.ts'
import { CommandFailed, formatTime, formatTimeAndAge, listing, record } from './output.ts'

type Listed = Answer<'webhook.list'>
type Message = Listed['items'][number]

const list = command({
  use: 'list <app>',
  about: 'show the address, the state of the receiver, and the last messages',
  examples: ['postern app-webhook list acme'],
  run: ({ call }, [app]) => call('webhook.list', { params: { app } }),
  show(listed, [app]) {
    const { failingSince, hasSecret, items, oldSecretUntil, url } = listed
    const head = record([
      ['address', url ?? 'none'],
      ['secret', hasSecret ? 'set' : 'none'],
      ['old secret', oldSecretUntil === null ? null : `signs until ${formatTime(oldSecretUntil)}`],
      ['receiver', failingSince === null ? null : `failing since ${formatTime(failingSince)}`],
    ])
    const messages = listing(items, '', {
      message: ({ id }) => id,
      at: ({ at }) => formatTime(at),
      event: ({ event }) => event,
      email: ({ email }) => email,
      state: describeState,
      tries: ({ tries }) => String(tries),
    })
    const next = explainNext(listed, app)
    return [head, messages, next === null ? '' : `Next: ${next}`].filter(Boolean).join('\n\n')
  },
})

const secret = command({
  use: 'secret <app>',
  about: 'make the secret that signs the messages, or replace it',
  options: [graceOption('how long the old secret keeps signing', '1d')],
  examples: ['postern app-webhook secret acme'],
  run: ({ call }, [app], { grace }: { grace: number }) =>
    call('webhook.secret', { params: { app }, body: { graceSeconds: grace / 1000 } }),
  show({ oldSecretUntil, secret: shown }, [app]) {
    const old = oldSecretUntil === null ? '' : ` The old secret signs as well until ${formatTime(oldSecretUntil)}.`
    return `${shown}\n\nThis is shown only now. Give it to the receiver of ${app}.${old}`
  },
})

const test = command({
  use: 'test <app>',
  about: 'send a test message, and wait for the answer of the receiver',
  examples: ['postern app-webhook test acme'],
  async run({ call }, [app]) {
    const { id } = await call('webhook.test', { params: { app }, body: {} })
    return untilAnswered(call, app, id)
  },
  show: describeDelivered,
})

const show = command({
  use: 'show <app> <message>',
  about: 'show one message, its JSON, and the last answer of the receiver',
  examples: ['postern app-webhook show acme wh_…'],
  run: ({ call }, [app, message]) => call('webhook.show', { params: { app, message } }),
  show: (message) =>
    record([
      ['message', message.id],
      ['event', message.event],
      ['email', message.email],
      ['at', formatTimeAndAge(message.at)],
      ['state', describeState(message)],
      ['tries', message.tries],
      ['response', message.response],
      ...message.trail.map(({ at, result }) => ['try', `${formatTimeAndAge(at)}: ${result}`] as const),
      ['recipient', message.email === null ? null : message.keepsRecipient ? 'sent along' : 'no longer kept'],
      ['JSON', message.payload],
    ]),
})

const send = command({
  use: 'send <app> <message>',
  about: 'send a message again, or a waiting one now, and wait for the answer of the receiver',
  examples: ['postern app-webhook send acme wh_…'],
  async run({ call }, [app, message]) {
    const { id } = await call('webhook.send', { params: { app, message }, body: {} })
    return untilAnswered(call, app, id)
  },
  show: describeDelivered,
})

export const webhookCommands: CommandGroup = {
  name: 'app-webhook',
  about: 'notify an app of emails that bounced, failed or were suppressed',
  commands: [list, show, send, secret, test],
}

/** A process with the role worker sends the message. */
const waitMs = 15_000
const askEveryMs = 250

async function untilAnswered(call: Call, app: string, message: string): Promise<Message> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const tried = await call('webhook.show', { params: { app, message } })
    if (tried.state === 'sent') return tried
    if (tried.result !== null)
      throw new CommandFailed(
        `the receiver of ${app} did not accept it: ${[tried.result, tried.response].join(' ').trim()}`,
      )
    if (performance.now() > endMs)
      throw new CommandFailed('no process sent it within 15 s: is one with the role worker running?')
    await sleep(askEveryMs)
  }
}

function describeDelivered({ result }: Message, [app]: readonly [string, string]): string {
  return `Delivered: the receiver of ${app} answered ${result}.`
}

function describeState({ nextTryAt, result, state }: Message): string {
  const said = result === null ? '' : ` (${result})`
  if (state !== 'waiting') return `${state === 'sent' ? 'sent' : 'given up'}${said}`
  // While its receiver fails, a message waits longer than its own turn.
  const isLater = nextTryAt !== null && Date.parse(nextTryAt) > Date.now()
  return `waiting${said}${isLater ? `, next try ${formatTime(nextTryAt)}` : ''}`
}

function explainNext({ hasSecret, items, url }: Listed, app: string): string | null {
  if (url === null) return `postern app update ${app} --webhook-url URL`
  if (!hasSecret) return `postern app-webhook secret ${app}`
  return items.length === 0 ? `postern app-webhook test ${app}` : null
}
