/**
 * `postern token …`: management tokens, for the API and for commands from other machines. A token is shown
 * once.
 */

import { type Command, Option } from 'commander'
import { hasEnded } from '../domain/bearer.ts'
import { counted } from '../domain/counts.ts'
import { type Role, roles } from '../domain/operator/management-token.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { TokenResource } from '../management/resources.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { collect } from './options.ts'
import { formatTime, print, table } from './output.ts'
import { parseTime } from './time.ts'

type CreateOptions = { role: Role; app?: string[]; expires?: string }

const createExample = `
Examples:
  postern token create laptop --role admin > token.txt
  postern token create acme-team --role operator --app acme --expires 2027-01-31`

export function addTokenCommands(program: Command, deps: CliDeps): void {
  const token = program.command('token').description('create, list and revoke tokens of the management API')
  token
    .command('create <name>')
    .description('create a token; it is shown once, alone on standard output')
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .option('--app <app>', 'only for this app (repeatable; default: the whole service)', collect)
    .option('--expires <date>', 'when the token expires (default: in 90 days)', (text) =>
      parseTime(text, '--expires'),
    )
    .addHelpText('after', createExample)
    .action((name: string, options: CreateOptions) =>
      withOperations(deps, (context) => create(deps, context, name, options)),
    )
  token
    .command('list')
    .description('list all tokens')
    .action(() => withOperations(deps, (context) => list(deps, context)))
  token
    .command('revoke <token>')
    .description('revoke a token by its id; takes effect for the next request')
    .action((id: string) =>
      withOperations(deps, async ({ call }) => {
        const revoked = await call('token.revoke', { params: { token: id } })
        print(deps.output, revoked, () => `revoked ${revoked.id} (${revoked.name})`)
      }),
    )
}

async function create(
  deps: CliDeps,
  { call }: CommandContext,
  name: string,
  { role, app, expires }: CreateOptions,
): Promise<void> {
  const body = { name, role, ...(app && { apps: app }), ...(expires && { expiresAt: expires }) }
  const made = await call('token.create', { body })
  const scope = made.apps === null ? 'the whole service' : counted(made.apps.length, 'app')
  if (!deps.output.json)
    deps.output.err(
      `postern: ${made.id}: ${made.role} of ${scope}, until ${formatTime(made.expiresAt)}. The token is shown only this once. Keep it in a file with mode 600 for --token-file.`,
    )
  print(deps.output, made, () => made.token)
}

async function list(deps: CliDeps, context: CommandContext): Promise<void> {
  const tokens = await listAll(context.call, 'token.list', {})
  print(deps.output, tokens, () => {
    if (tokens.length === 0) return 'no tokens yet; "postern token create" makes one'
    const rows = tokens.map((token) => [
      token.id,
      token.name,
      token.role,
      token.apps === null ? 'all' : token.apps.join(' '),
      describeStatus(token),
      formatTime(token.lastUsedAt),
    ])
    return table(['id', 'name', 'role', 'apps', 'status', 'last used'], rows)
  })
}

function describeStatus({ revokedAt, expiresAt }: TokenResource): string {
  if (revokedAt !== null) return `revoked ${formatTime(revokedAt)}`
  return `${hasEnded({ revokedAt, expiresAt }, Date.now()) ? 'expired' : 'active until'} ${formatTime(expiresAt)}`
}
