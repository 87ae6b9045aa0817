/** `postern send-test`: one real email, through the queue and the relay of the running service. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CodePlace } from '../domain/request/email-content.ts'
import type { EmailDetail } from '../management/emails/emails.ts'
import { command, given, option } from './command.ts'
import type { Call } from './context.ts'
import { UsageError } from './output.ts'
import { codeOption } from './preview.ts'

const pollMs = 250

type Options = {
  readonly app: string
  readonly wait: number
  readonly locale?: string
  readonly code?: CodePlace
}

export const sendTestCommand = command({
  use: 'send-test <address>',
  about: 'send one test email and wait for the result',
  options: [
    option('--app <app>', 'the app that sends it').makeOptionMandatory(),
    option('--locale <language>', 'the language of the email, as in a request'),
    codeOption(),
    option('--wait <seconds>', 'how long to wait', parseWait).default(10),
  ],
  examples: ['postern send-test YOUR@ADDRESS --app acme'],
  async run({ call }, [to], { app, code, locale, wait }: Options) {
    const body = { to, ...given({ code, locale }) }
    const { email: id } = await call('app.test_email', { params: { app }, body })
    return untilFinished(call, id, wait * 1000)
  },
  show(email) {
    const hint = isTried(email)
      ? ''
      : '\nThe email stays queued. "postern doctor" says whether a process is sending and whether the relays answer.'
    return `${email.id}: ${email.explanation}${hint}`
  },
  fault(email, _, { wait }) {
    if (!isTried(email)) return `the test email was not tried within ${wait} s; see above`
    if (email.finishedAt === null)
      return `the test email was not delivered within ${wait} s, and will be tried again; see above`
    return email.state === 'delivered' ? null : 'the test email was not delivered; see above'
  },
})

function parseWait(text: string): number {
  const seconds = Number(text)
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 600) return seconds
  throw new UsageError('--wait is a whole number of seconds from 1 to 600')
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
