/** `postern check-link`: would a link be sent, and if not, why. Nothing is sent or counted. */
import { type Command, Option } from 'commander'
import { type EmailType, emailTypes } from '../domain/request/email-request.ts'
import type { Answer } from '../management/operations.ts'
import { type CliDeps, withOperations } from './context.ts'
import { CommandFailed, print, table } from './output.ts'

type Options = { type: EmailType }

export function addCheckLinkCommand(program: Command, deps: CliDeps): void {
  program
    .command('check-link <app> <url>')
    .description('check whether a link would be sent for an app, and if not, why')
    .addOption(new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link'))
    .addHelpText(
      'after',
      "\nAny text will do as the token: do not give a real one, which others could see.\n\nExample:\n  postern check-link acme 'https://app.acme.test/auth?token=any'",
    )
    .action((app: string, url: string, { type }: Options) =>
      withOperations(deps, async ({ call }) => {
        const check = await call('app.check_link', { params: { app }, body: { url, type } })
        print(deps.output, check, () => describe(app, check))
        if (!check.allowed) throw new CommandFailed('the link would not be sent; see above')
      }),
    )
}

function describe(app: string, { appStatus, hosted, refusal, entries }: Answer<'app.check_link'>): string {
  const verdict =
    refusal === null
      ? `The allow-list of ${app} allows the link${hosted ? ', which goes through a Postern page' : ''}.`
      : [
          [`${refusal.code}: ${refusal.message}`, refusal.advice].filter(Boolean).join(' '),
          ...refusal.issues.map(({ code, message }) => `  ${code}: ${message}`),
        ].join('\n')
  const rows = entries.map(({ entry, differs }) => [
    entry,
    differs === null ? 'matches' : `different ${differs}`,
  ])
  const compared = rows.length === 0 ? [] : [table(['entry', 'result'], rows)]
  const disabled = appStatus === 'active' ? [] : [`The app is ${appStatus}: all its requests are refused.`]
  return [verdict, ...compared, ...disabled].join('\n\n')
}
