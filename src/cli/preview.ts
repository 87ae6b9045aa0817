/** `postern preview`: one of an app's emails with sample content. */
import { type Command, Option } from 'commander'
import { escapeControls } from '../domain/controls.ts'
import { type CodePlace, codePlaces } from '../domain/delivery/email-content.ts'
import { type EmailType, emailTypes } from '../domain/request/email-request.ts'
import { type CliDeps, withOperations } from './context.ts'
import { print } from './output.ts'

/** They surround names in languages that are written from right to left; a terminal shows them as signs. */
const isolates = /[\u2068\u2069]/g

type Options = {
  readonly type: EmailType
  readonly html?: boolean
  readonly locale?: string
  readonly code?: CodePlace
}

export function addPreviewCommand(program: Command, deps: CliDeps): void {
  program
    .command('preview <app>')
    .description('print one of an app’s emails, with sample content')
    .addOption(new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link'))
    .option('--locale <language>', 'as in a request, such as de or "ca, es;q=0.9"')
    .addOption(codeOption())
    .option('--html', 'print the HTML, for example into a file to open in a browser')
    .addHelpText('after', '\nExample:\n  postern preview acme --html > preview.html')
    .action((app: string, { type, html: asHtml, locale, code }: Options) =>
      withOperations(deps, async ({ call }) => {
        const email = await call('app.preview', {
          params: { app },
          body: { type, ...(locale && { locale }), ...(code && { code }) },
        })
        const { html, language, subject, text } = email
        print(deps.output, email, () =>
          asHtml
            ? escapeControls(html, (hex) => `&#x${hex};`)
            : `Language: ${language}\nSubject: ${subject}\n\n${text.replace(isolates, '')}`,
        )
      }),
    )
}

/** Where the email has a sample code; as the app allows unless given. */
export const codeOption = (): Option =>
  new Option('--code <place>', 'where it has a code (default: as the app allows)').choices(codePlaces)
