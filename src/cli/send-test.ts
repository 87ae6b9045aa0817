/** `postern send-test`: one real email, through the queue and the relay of the running service. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { EmailDetail } from '../management/resources.ts'
import { type Call, type CliDeps, withOperations } from './context.ts'
import { CommandFailed, print } from './output.ts'

const waitMs = 10_000
const pollMs = 250

export function addSendTestCommand(program: Command, deps: CliDeps): void {
  program
    .command('send-test <address>')
    .description('send one test email, and wait up to 10 s for what becomes of it')
    .requiredOption('--app <app>', 'the app that sends it')
    .addHelpText('after', '\nExample:\n  postern send-test you@example.com --app acme')
    .action((to: string, { app }: { app: string }) =>
      withOperations(deps, ({ call }) => sendTest(deps, call, { app, to })),
    )
}

async function sendTest(deps: CliDeps, call: Call, { app, to }: { app: string; to: string }): Promise<void> {
  const { email: id } = await call('app.test_email', { params: { app }, body: { to } })
  const email = await untilTried(call, id)
  const untried = !isTried(email)
  const hint = untried
    ? '\n"postern doctor" says whether a process sends, and whether the relays answer. The email waits in the queue.'
    : ''
  print(deps.output, email, () => `${id}: ${email.explanation}${hint}`)
  if (untried) throw new CommandFailed('the test email was not tried within 10 s; see above')
  if (email.finishedAt !== null && email.state !== 'delivered')
    throw new CommandFailed('the test email was not delivered; see above')
}

/** An outcome without an attempt says nothing about the relay. */
const isTried = ({ trail, finishedAt }: EmailDetail): boolean =>
  finishedAt !== null || trail.some(({ outcome }) => outcome !== 'unattempted')

/** The email once an attempt was recorded, or as it is after the wait. */
async function untilTried(call: Call, id: string): Promise<EmailDetail> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const email = await call('email.show', { params: { email: id } })
    if (isTried(email) || performance.now() >= endMs) return email
    await sleep(pollMs)
  }
}
