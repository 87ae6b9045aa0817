/** `postern person …`, `postern session …` and `postern console login`: people who sign in to the console. */

import { type Command, Option } from 'commander'
import { counted } from '../domain/counts.ts'
import { minuteMs } from '../domain/duration.ts'
import { type Role, roles } from '../domain/operator/management-token.ts'
import { signInCodeMs } from '../domain/operator/sign-in.ts'
import { listAll } from '../management/operation/list-all.ts'
import type { Answer } from '../management/operations.ts'
import type { PersonResource } from '../management/people/people-resources.ts'
import { type CliDeps, type CommandContext, isRemote, withOperations } from './context.ts'
import { collect } from './options.ts'
import { formatTime, formatTimeAndAge, print, table, UsageError } from './output.ts'

const roleOption = () => new Option('--role <role>', 'what the person may do').choices(roles)

const inviteExample = `
Examples:
  postern person invite Ada --role admin
  postern person invite "Acme support" --role reader --app acme`

type PermissionOptions = { role?: Role; app?: string[]; allApps?: true }
type ChangeOptions = PermissionOptions & { disable?: true; enable?: true }

export function addPersonCommands(program: Command, deps: CliDeps): void {
  const person = program.command('person').description('invite people to the console, list and change them')
  person
    .command('invite <name>')
    .description('let a person sign in to the console with a link that is shown once')
    .addOption(roleOption().makeOptionMandatory())
    .option('--app <app>', 'only for this app (repeatable; default: the whole service)', collect)
    .addHelpText('after', inviteExample)
    .action((name: string, { role = 'reader', app }: PermissionOptions) =>
      withOperations(deps, async ({ call }) => {
        const body = { name, role, ...(app && { apps: app }) }
        printLink(deps, await call('person.invite', { body }))
      }),
    )
  person
    .command('link <person>')
    .description('create another link that signs a person in once')
    .action((name: string) =>
      withOperations(deps, async ({ call }) =>
        printLink(deps, await call('person.link', { params: { person: name }, body: {} })),
      ),
    )
  person
    .command('end-link <person>')
    .description('end the open link of a person before it is used')
    .action((name: string) =>
      withOperations(deps, async ({ call }) => {
        const changed = await call('person.end_link', { params: { person: name } })
        print(deps.output, changed, () => `ended; ${describePerson(changed)}`)
      }),
    )
  person
    .command('list')
    .description('list the people who may sign in')
    .action(() => withOperations(deps, (context) => listPeople(deps, context)))
  addChangeCommands(person, deps)
  addSessionCommands(program, deps)
}

function addChangeCommands(person: Command, deps: CliDeps): void {
  person
    .command('update <person>')
    .description('change what a person may do; takes effect for the next request')
    .addOption(roleOption())
    .option('--app <app>', 'only for this app (repeatable)', collect)
    .option('--all-apps', 'for the whole service')
    .option('--disable', "end all of the person's sessions and links, and allow no new ones")
    .option('--enable', 'let the person sign in again')
    .action((name: string, options: ChangeOptions) =>
      withOperations(deps, (context) => change(deps, context, name, options)),
    )
  person
    .command('made <person>')
    .description('list the tokens and keys a person created that still work')
    .action((name: string) => withOperations(deps, (context) => listMade(deps, context, name)))
  person
    .command('remove-passkey <person> <passkey>')
    .description('remove a person’s passkey by its id ("postern person list --json" shows them)')
    .action((name: string, passkey: string) =>
      withOperations(deps, async ({ call }) => {
        const changed = await call('person.remove_passkey', { params: { person: name, passkey } })
        print(deps.output, changed, () => `removed; ${describePerson(changed)}`)
      }),
    )
}

async function change(
  deps: CliDeps,
  { call }: CommandContext,
  name: string,
  options: ChangeOptions,
): Promise<void> {
  const changed = await call('person.change', { params: { person: name }, body: toBody(options) })
  const made = options.disable ? await call('person.made', { params: { person: name } }) : null
  print(deps.output, changed, () => `${describePerson(changed)}${made === null ? '' : describeMade(made)}`)
}

async function listMade(deps: CliDeps, { call }: CommandContext, name: string): Promise<void> {
  const made = await call('person.made', { params: { person: name } })
  print(deps.output, made, () => describeMade(made).trim() || `${name} created nothing that still works`)
}

function toBody({ role, app, allApps, disable, enable }: ChangeOptions) {
  if ([role, app, allApps, disable, enable].every((option) => option === undefined))
    throw new UsageError('nothing to change: give --role, --app, --all-apps, --disable or --enable')
  if (disable && enable) throw new UsageError('give --disable or --enable, not both')
  if (app !== undefined && allApps) throw new UsageError('give --app or --all-apps, not both')
  return {
    ...(role && { role }),
    ...(app && { apps: app }),
    ...(allApps && { apps: null }),
    ...((disable || enable) && { disabled: disable === true }),
  }
}

const describeScope = ({ apps }: PersonResource): string =>
  apps === null ? 'the whole service' : counted(apps.length, 'app')

const describePerson = (person: PersonResource): string =>
  `${person.name}: ${person.role} of ${describeScope(person)}${person.disabledAt === null ? '' : ', disabled'}`

/** With the command that ends each. */
function describeMade({ tokens, keys }: Answer<'person.made'>): string {
  if (tokens.length + keys.length === 0) return ''
  const rows = [
    ...tokens.map(({ id, name }) => [`token ${name}`, `postern token revoke ${id}`]),
    ...keys.map(({ id, name, app }) => [`key ${name ?? id} of ${app}`, `postern key revoke ${id}`]),
  ]
  return `\n\nThese still work; revoke them with:\n${table(['made', 'command'], rows)}`
}

function printLink(deps: CliDeps, made: Answer<'person.invite'>): void {
  if (!deps.output.json)
    deps.output.err(
      `postern: ${describePerson(made)}. The link signs the person in once, until ${formatTime(made.linkExpiresAt)}; it is shown only this once. To sign in again later, add a passkey in the console.`,
    )
  print(deps.output, made, () => made.link)
}

const describeWays = ({ passkeys, provider }: PersonResource): string => {
  if (provider !== null) return new URL(provider).host
  return passkeys.length === 0 ? 'one-time links' : counted(passkeys.length, 'passkey')
}

async function listPeople(deps: CliDeps, context: CommandContext): Promise<void> {
  const people = await listAll(context.call, 'person.list', {})
  print(deps.output, people, () => {
    if (people.length === 0)
      return 'nobody yet; "postern console login" signs you in, "postern person invite" invites others'
    const rows = people.map((person) => [
      person.id,
      person.name,
      person.role,
      person.apps === null ? 'all' : person.apps.join(' '),
      describeWays(person),
      person.openLink === null ? '' : `until ${formatTime(person.openLink.expiresAt)}`,
      person.disabledAt === null ? 'active' : `disabled ${formatTime(person.disabledAt)}`,
      formatTimeAndAge(person.lastSeenAt) ?? 'never',
    ])
    return table(['id', 'name', 'role', 'apps', 'signs in with', 'open link', 'status', 'last seen'], rows)
  })
}

function addSessionCommands(program: Command, deps: CliDeps): void {
  const session = program.command('session').description('list and end sessions of the console')
  session
    .command('list')
    .description('list the active sessions')
    .action(() =>
      withOperations(deps, async (context) => {
        const sessions = await listAll(context.call, 'session.list', {})
        print(deps.output, sessions, () => {
          if (sessions.length === 0) return 'nobody is signed in'
          const rows = sessions.map(({ id, name, method, createdAt, seenAt, agent }) => [
            ...[id, name, method, formatTime(createdAt), formatTimeAndAge(seenAt), agent],
          ])
          return table(['id', 'person', 'by', 'since', 'last used', 'browser'], rows)
        })
      }),
    )
  session
    .command('end <session>')
    .description('end a session by its id; takes effect for its next request')
    .action((id: string) =>
      withOperations(deps, async ({ call }) => {
        const ended = await call('session.end', { params: { session: id } })
        print(deps.output, ended, () => `ended ${ended.id} of ${ended.name}`)
      }),
    )
}

const loginExample = `
The person is created if the name is new. No password is needed: a user who can run this command can open the database anyway.

Examples:
  postern console login
  postern console login --as Ada --role operator`

type LoginOptions = PermissionOptions & { as?: string }

export function addConsoleCommands(program: Command, deps: CliDeps): void {
  program
    .command('console')
    .description('the console in the browser')
    .command('login')
    .description(`print a link that signs you in once, within ${signInCodeMs / minuteMs} minutes`)
    .option('--as <name>', 'the person who signs in (default: your user name)')
    .addOption(new Option('--role <role>', 'role of the person, if new (default: admin)').choices(roles))
    .option('--app <app>', 'only for this app, if the person is new (repeatable)', collect)
    .addHelpText('after', loginExample)
    .action((options: LoginOptions) => {
      if (isRemote(deps)) throw new UsageError('run it on the server; leave out --url, and unset POSTERN_URL')
      return withOperations(deps, (context) => logIn(deps, context, options))
    })
}

async function logIn(
  deps: CliDeps,
  context: CommandContext,
  { as = deps.user, role, app }: LoginOptions,
): Promise<void> {
  const { call } = context
  const minutes = signInCodeMs / minuteMs
  const people = await listAll(context.call, 'person.list', {})
  const isNamed = (wanted: string) => people.find(({ id, name }) => name === wanted || id === wanted)
  // Names of an OpenID provider are not ours: this command is the way in when nothing else is.
  const name = isNamed(as)?.provider == null ? as : `${as} (server)`
  const known = isNamed(name) !== undefined
  if (known && (role !== undefined || app !== undefined))
    throw new UsageError(`${name} exists: change role and apps with "postern person update"`)
  const made = known
    ? await call('person.link', { params: { person: name }, body: { minutes } })
    : await call('person.invite', {
        body: { name, role: role ?? 'admin', minutes, ...(app && { apps: app }) },
      })
  printLink(deps, made)
}
