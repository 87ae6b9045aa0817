/** `postern preview`: one of an app's emails with sample content. */
import { type Command, Option } from 'commander'
import { type EmailType, emailTypes } from '../domain/request/email-request.ts'
import { type CliDeps, withOperations } from './context.ts'
import { print } from './output.ts'

export function addPreviewCommand(program: Command, deps: CliDeps): void {
  program
    .command('preview <app>')
    .description('print one of the emails of an app, with sample content')
    .addOption(new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link'))
    .option('--html', 'the HTML, for a file to open in a browser')
    .addHelpText('after', '\nExample:\n  postern preview acme --html > preview.html')
    .action((app: string, { type, html: asHtml }: { type: EmailType; html?: boolean }) =>
      withOperations(deps, async ({ call }) => {
        const email = await call('app.preview', { params: { app }, body: { type } })
        print(deps.output, email, () => (asHtml ? email.html : `Subject: ${email.subject}\n\n${email.text}`))
      }),
    )
}
