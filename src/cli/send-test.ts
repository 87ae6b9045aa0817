/** `postern send-test`: one real email, through the queue and the relay of the running service. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { CodePlace } from '../domain/delivery/email-content.ts'
import type { EmailDetail } from '../management/emails/email-detail.ts'
import { type Call, type CliDeps, withOperations } from './context.ts'
import { CommandFailed, print, UsageError } from './output.ts'
import { codeOption } from './preview.ts'

const pollMs = 250

type Options = {
  readonly app: string
  readonly wait: number
  readonly locale?: string
  readonly code?: CodePlace
}

export function addSendTestCommand(program: Command, deps: CliDeps): void {
  program
    .command('send-test <address>')
    .description('send one test email and wait for the result')
    .requiredOption('--app <app>', 'the app that sends it')
    .option('--locale <language>', 'the language of the email, as in a request')
    .addOption(codeOption())
    .addOption(new Option('--wait <seconds>', 'how long to wait').argParser(parseWait).default(10))
    .addHelpText(
      'after',
      '\nExample, with an address of your own:\n  postern send-test YOUR@ADDRESS --app acme',
    )
    .action((to: string, options: Options) =>
      withOperations(deps, ({ call }) => sendTest(deps, call, to, options)),
    )
}

function parseWait(text: string): number {
  const seconds = Number(text)
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 600) return seconds
  throw new UsageError('--wait is a whole number of seconds from 1 to 600')
}

async function sendTest(
  deps: CliDeps,
  call: Call,
  to: string,
  { app, code, locale, wait }: Options,
): Promise<void> {
  const { email: id } = await call('app.test_email', {
    params: { app },
    body: { to, ...(locale && { locale }), ...(code && { code }) },
  })
  const email = await untilFinished(call, id, wait * 1000)
  const untried = !isTried(email)
  const hint = untried
    ? '\nThe email stays queued. "postern doctor" says whether a process is sending and whether the relays answer.'
    : ''
  print(deps.output, email, () => `${id}: ${email.explanation}${hint}`)
  if (untried) throw new CommandFailed(`the test email was not tried within ${wait} s; see above`)
  if (email.finishedAt === null)
    throw new CommandFailed(
      `the test email was not delivered within ${wait} s, and will be tried again; see above`,
    )
  if (email.state !== 'delivered') throw new CommandFailed('the test email was not delivered; see above')
}

/** An outcome without an attempt says nothing about the relay. */
const isTried = ({ trail, finishedAt }: EmailDetail): boolean =>
  finishedAt !== null || trail.some(({ outcome }) => outcome !== 'unattempted')

/** The email once it has finished, or as it is after the wait. */
async function untilFinished(call: Call, id: string, waitMs: number): Promise<EmailDetail> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const email = await call('email.show', { params: { email: id } })
    if (email.finishedAt !== null || performance.now() >= endMs) return email
    await sleep(pollMs)
  }
}
