/** `postern check-link`: would a link be sent, and if not, why. Nothing is sent or counted. */
import type { EmailType } from '../domain/request/email-kinds.ts'
import type { Answer } from '../management/operations.ts'
import { command } from './command.ts'
import { typeOption } from './options.ts'
import { table } from './output.ts'

export const checkLinkCommand = command({
  use: 'check-link <app> <url>',
  about: 'check whether a link would be sent for an app, and if not, why',
  options: [typeOption()],
  notes: 'Any text will do as the token: do not give a real one, which others could see.',
  examples: ["postern check-link acme 'https://app.acme.test/auth?token=any'"],
  run: ({ call }, [app, url], { type }: { type: EmailType }) =>
    call('app.check_link', { params: { app }, body: { url, type } }),
  show: (check, [app]) => describe(app, check),
  fault: ({ allowed }) => (allowed ? null : 'the link would not be sent; see above'),
})

function describe(app: string, { appStatus, hosted, refusal, entries }: Answer<'app.check_link'>): string {
  const verdict =
    refusal === null
      ? `The allow-list of ${app} allows the link${hosted ? ', which goes through a Postern page' : ''}.`
      : [
          [`${refusal.code}: ${refusal.message}`, refusal.advice].filter(Boolean).join(' '),
          ...refusal.issues.map(({ code, message }) => `  ${code}: ${message}`),
        ].join('\n')
  const rows = entries.map(({ entry, differs }) => [entry, differs === null ? 'matches' : `different ${differs}`])
  const compared = rows.length === 0 ? [] : [table(['entry', 'result'], rows)]
  const disabled = appStatus === 'active' ? [] : [`The app is ${appStatus}: all its requests are refused.`]
  return [verdict, ...compared, ...disabled].join('\n\n')
}
