/** `postern send-test`: one real email, through the queue and the relay of the running service. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Config } from '../config/parse-config.ts'
import type { LinkTarget } from '../domain/app/hosted-link.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import { explainEmail } from '../management/explain-email.ts'
import { findApp } from '../management/find-app.ts'
import { findEmail } from '../management/find-email.ts'
import { presentEmail } from '../management/present.ts'
import { sendTestEmail } from '../management/send-test-email.ts'
import { sealLink } from '../store/crypto/sealed-link.ts'
import type { EmailRecord, Store } from '../store/store.ts'
import { type CliDeps, withStore } from './context.ts'
import { CommandFailed, print, unwrap } from './output.ts'

const waitMs = 10_000
const pollMs = 100

export function addSendTestCommand(program: Command, deps: CliDeps): void {
  program
    .command('send-test <address>')
    .description('send one test email, and wait up to 10 s for what becomes of it')
    .requiredOption('--app <app>', 'the app that sends it')
    .addHelpText('after', '\nExample:\n  postern send-test you@example.com --app acme')
    .action((to: string, { app }: { app: string }) =>
      withStore(deps, (store, config) => sendTest({ deps, store, config }, app, to)),
    )
}

type Context = { deps: CliDeps; store: Store; config: Config }

async function sendTest({ deps, store, config }: Context, appName: string, to: string): Promise<void> {
  const app = unwrap(await findApp(store, appName))
  const links = {
    baseUrl: config.linksBaseUrl,
    seal: (appId: AppId, target: LinkTarget) => sealLink(config.ring, appId, target),
  }
  const id = unwrap(await sendTestEmail({ store, links }, app, to))
  const email = await untilTried(store, id)
  const untried = !isTried(email)
  const hint = untried
    ? '\n"postern doctor" says whether a process sends, and whether the relays answer. The email waits in the queue.'
    : ''
  print(deps.output, presentEmail(email), () => `${id}: ${explainEmail(email)}${hint}`)
  if (untried) throw new CommandFailed('the test email was not tried within 10 s; see above')
  if (email.finishedAt !== null && email.state !== 'delivered')
    throw new CommandFailed('the test email was not delivered; see above')
}

/** An outcome without an attempt says nothing about the relay. */
const isTried = ({ trail, finishedAt }: EmailRecord): boolean =>
  finishedAt !== null || trail.some(({ outcome }) => outcome !== 'unattempted')

/** The email once an attempt was recorded, or as it is after the wait. */
async function untilTried(store: Store, id: EmailId): Promise<EmailRecord> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const email = unwrap(await findEmail(store, id))
    if (isTried(email) || performance.now() >= endMs) return email
    await sleep(pollMs)
  }
}
