/**
 * `postern token …`: management tokens, for the API and for commands from other machines. A token is shown
 * once.
 */
import { hasEnded } from '../domain/bearer.ts'
import { counted } from '../domain/counts.ts'
import type { Role } from '../domain/operator/management-token.ts'
import { listAll } from '../management/list-all.ts'
import type { TokenResource } from '../management/resources.ts'
import { type CommandGroup, command, given, repeatable } from './command.ts'
import { expiresOption, roleOption } from './options.ts'
import { formatTime, listing } from './output.ts'

const create = command({
  use: 'create <name>',
  about: 'create a token; it is shown once, alone on standard output',
  options: [
    roleOption('what it may do').makeOptionMandatory(),
    repeatable('--app <app>', 'only for this app (repeatable; default: the whole service)'),
    expiresOption('when the token expires (default: in 90 days)'),
  ],
  examples: [
    'postern token create laptop --role admin > token.txt',
    'postern token create acme-team --role operator --app acme --expires 2027-01-31',
  ],
  run: ({ call }, [name], { app: apps, expires: expiresAt, role }: { role: Role; app?: string[]; expires?: string }) =>
    call('token.create', { body: { name, role, ...given({ apps, expiresAt }) } }),
  aside: ({ apps, expiresAt, id, role }) =>
    `${id}: ${role} of ${apps === null ? 'the whole service' : counted(apps.length, 'app')}, until ${formatTime(expiresAt)}. The token is shown only this once. Keep it in a file with mode 600 for --token-file.`,
  show: ({ token }) => token,
})

const list = command({
  use: 'list',
  about: 'list all tokens',
  examples: ['postern token list'],
  run: async ({ call }) => ({
    tokens: await listAll(call, 'token.list', {}),
    slugs: (await call('app.names', {})).slugs,
  }),
  document: ({ tokens }) => tokens,
  show: ({ tokens, slugs }) =>
    listing(tokens, 'no tokens yet; "postern token create" makes one', {
      id: ({ id }) => id,
      name: ({ name }) => name,
      role: ({ role }) => role,
      apps: ({ apps }) => (apps === null ? 'all' : apps.map((app) => slugs[app] ?? app).join(' ')),
      status: describeStatus,
      'last used': ({ lastUsedAt }) => formatTime(lastUsedAt),
    }),
})

const revoke = command({
  use: 'revoke <token>',
  about: 'revoke a token by its id; takes effect for the next request',
  examples: ['postern token revoke tok_…'],
  run: ({ call }, [token]) => call('token.revoke', { params: { token } }),
  show: ({ id, name }) => `revoked ${id} (${name})`,
})

export const tokenCommands: CommandGroup = {
  name: 'token',
  about: 'create, list and revoke tokens of the management API',
  commands: [create, list, revoke],
}

function describeStatus({ revokedAt, expiresAt }: TokenResource): string {
  if (revokedAt !== null) return `revoked ${formatTime(revokedAt)}`
  return `${hasEnded({ revokedAt, expiresAt }, Date.now()) ? 'expired' : 'active until'} ${formatTime(expiresAt)}`
}
