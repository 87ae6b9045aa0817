/** `postern check-link`: would a link be sent, and if not, why. Nothing is sent or counted. */
import { type Command, Option } from 'commander'
import type { App } from '../domain/app/app.ts'
import { type EmailType, emailTypes } from '../domain/request/email-request.ts'
import { checkLink, type LinkCheck } from '../management/check-link.ts'
import { findApp } from '../management/find-app.ts'
import { type CliDeps, withStore } from './context.ts'
import { CommandFailed, print, table, unwrap } from './output.ts'

type Options = { type: EmailType }

export function addCheckLinkCommand(program: Command, deps: CliDeps): void {
  program
    .command('check-link <app> <url>')
    .description('say whether a link would be sent for an app, and if not, why')
    .addOption(new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link'))
    .addHelpText(
      'after',
      "\nAny text will do as the token: do not give a real one, which others could see.\n\nExample:\n  postern check-link acme 'https://app.acme.test/auth?token=any'",
    )
    .action((app: string, url: string, { type }: Options) =>
      withStore(deps, async (store, { linksBaseUrl }) => {
        const found = unwrap(await findApp(store, app))
        const check = checkLink(found, { url, type, baseUrl: linksBaseUrl })
        print(deps.output, { ...check, appStatus: found.status }, () => show(found, check))
        if (!check.allowed || found.status !== 'active')
          throw new CommandFailed('the link would not be sent; see above')
      }),
    )
}

function show({ slug, status }: App, { hosted, refusal, entries }: LinkCheck): string {
  const verdict =
    refusal === null
      ? `The allow-list of ${slug} allows the link${hosted ? ', which goes through a page of Postern' : ''}.`
      : [
          `${refusal.code}: ${refusal.message}`,
          ...refusal.issues.map(({ code, message }) => `  ${code}: ${message}`),
        ].join('\n')
  const rows = entries.map(({ entry, differs }) => [
    entry,
    differs === null ? 'allows it' : `another ${differs}`,
  ])
  const compared = rows.length === 0 ? [] : [table(['entry', 'the link'], rows)]
  const disabled = status === 'active' ? [] : [`The app is ${status}: none of its requests is accepted.`]
  return [verdict, ...compared, ...disabled].join('\n\n')
}
