/** `postern preview`: one of an app's emails with sample content. */
import { Option } from 'commander'
import { escapeControls } from '../domain/controls.ts'
import { type CodePlace, codePlaces } from '../domain/request/email-content.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import { command, given, option } from './command.ts'
import { typeOption } from './options.ts'

/** They surround names in languages that are written from right to left; a terminal shows them as signs. */
const isolates = /[\u2068\u2069]/g

/** Where the email has a sample code; as the app allows unless given. */
export const codeOption = (): Option =>
  new Option('--code <place>', 'where it has a code (default: as the app allows)').choices(codePlaces)

type Options = {
  readonly type: EmailType
  readonly html?: boolean
  readonly locale?: string
  readonly code?: CodePlace
}

export const previewCommand = command({
  use: 'preview <app>',
  about: 'print one of an app’s emails, with sample content',
  options: [
    typeOption(),
    option('--locale <language>', 'as in a request, such as de or "ca, es;q=0.9"'),
    codeOption(),
    option('--html', 'print the HTML, for example into a file to open in a browser'),
  ],
  examples: ['postern preview acme --html > preview.html'],
  run: ({ call }, [app], { type, locale, code }: Options) =>
    call('app.preview', { params: { app }, body: { type, ...given({ locale, code }) } }),
  show: ({ html, language, subject, text }, _, { html: asHtml }) =>
    asHtml
      ? escapeControls(html, (hex) => `&#x${hex};`)
      : `Language: ${language}\nSubject: ${subject}\n\n${text.replace(isolates, '')}`,
})
