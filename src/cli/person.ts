/** `postern person …`, `postern session …` and `postern console login`: people who sign in to the console. */
import { counted } from '../domain/counts.ts'
import { minuteMs } from '../domain/duration.ts'
import type { Role } from '../domain/operator/management-token.ts'
import { signInCodeMs } from '../domain/operator/sign-in.ts'
import { listAll } from '../management/list-all.ts'
import type { Answer } from '../management/operations.ts'
import type { PersonResource } from '../management/people/people-resources.ts'
import { type CommandGroup, type CommandSpec, command, given, option, repeatable } from './command.ts'
import { isRemote } from './context.ts'
import { roleOption } from './options.ts'
import { formatTime, formatTimeAndAge, listing, table, UsageError } from './output.ts'

type PermissionOptions = { role?: Role; app?: string[]; allApps?: true }
type ChangeOptions = PermissionOptions & { disable?: true; enable?: true }

const personRole = () => roleOption('what the person may do')

/** The link alone is on standard output. */
const link = {
  aside: (made: Answer<'person.invite'>) =>
    `${describePerson(made)}. The link signs the person in once, until ${formatTime(made.linkExpiresAt)}; it is shown only this once. To sign in again later, add a passkey in the console.`,
  show: (made: Answer<'person.invite'>) => made.link,
}

const invite = command({
  use: 'invite <name>',
  about: 'let a person sign in to the console with a link that is shown once',
  options: [
    personRole().makeOptionMandatory(),
    repeatable('--app <app>', 'only for this app (repeatable; default: the whole service)'),
  ],
  examples: ['postern person invite Ada --role admin', 'postern person invite "Acme support" --role reader --app acme'],
  run: ({ call }, [name], { role = 'reader', app: apps }: PermissionOptions) =>
    call('person.invite', { body: { name, role, ...given({ apps }) } }),
  ...link,
})

const newLink = command({
  use: 'link <person>',
  about: 'create another link that signs a person in once',
  examples: ['postern person link Ada'],
  run: ({ call }, [person]) => call('person.link', { params: { person }, body: {} }),
  ...link,
})

const endLink = command({
  use: 'end-link <person>',
  about: 'cancel the link of a person before it is used',
  examples: ['postern person end-link Ada'],
  run: ({ call }, [person]) => call('person.end_link', { params: { person } }),
  show: (changed) => `ended; ${describePerson(changed)}`,
})

const list = command({
  use: 'list',
  about: 'list the people who may sign in',
  examples: ['postern person list'],
  run: async ({ call }) => ({
    people: await listAll(call, 'person.list', {}),
    slugs: (await call('app.names', {})).slugs,
  }),
  document: ({ people }) => people,
  show: ({ people, slugs }) =>
    listing(people, 'nobody yet; "postern console login" signs you in, "postern person invite" invites others', {
      id: ({ id }) => id,
      name: ({ name }) => name,
      role: ({ role }) => role,
      apps: ({ apps }) => (apps === null ? 'all' : apps.map((app) => slugs[app] ?? app).join(' ')),
      'signs in with': describeWays,
      'unused link': ({ openLink }) => (openLink === null ? '' : `until ${formatTime(openLink.expiresAt)}`),
      status: describeStatus,
      'last seen': ({ lastSeenAt }) => formatTime(lastSeenAt) ?? 'never',
    }),
})

/** As the console marks it. */
function describeStatus({ disabledAt, lastSeenAt }: PersonResource): string {
  if (disabledAt !== null) return `disabled ${formatTime(disabledAt)}`
  return lastSeenAt === null ? 'invited' : 'active'
}

const update = command({
  use: 'update <person>',
  about: 'change what a person may do; takes effect for the next request',
  options: [
    personRole(),
    repeatable('--app <app>', 'only for this app (repeatable)'),
    option('--all-apps', 'for the whole service'),
    option('--disable', "end all of the person's sessions and links, and allow no new ones"),
    option('--enable', 'let the person sign in again'),
  ],
  examples: ['postern person update Ada --role operator --app acme', 'postern person update Ada --disable'],
  async run({ call }, [person], options: ChangeOptions) {
    const changed = await call('person.change', { params: { person }, body: toBody(options) })
    return { changed, made: options.disable ? await call('person.made', { params: { person } }) : null }
  },
  document: ({ changed }) => changed,
  show: ({ changed, made }) => `${describePerson(changed)}${made === null ? '' : describeMade(made)}`,
})

const made = command({
  use: 'made <person>',
  about: 'list the tokens and keys a person created that still work',
  examples: ['postern person made Ada'],
  run: ({ call }, [person]) => call('person.made', { params: { person } }),
  show: (all, [name]) => describeMade(all).trim() || `${name} created nothing that still works`,
})

const removePasskey = command({
  use: 'remove-passkey <person> <passkey>',
  about: 'remove a person’s passkey by its id ("postern person list --json" shows them)',
  examples: ['postern person remove-passkey Ada PASSKEY'],
  run: ({ call }, [person, passkey]) => call('person.remove_passkey', { params: { person, passkey } }),
  show: (changed) => `removed; ${describePerson(changed)}`,
})

export const personCommands: CommandGroup = {
  name: 'person',
  about: 'invite people to the console, list and change them',
  commands: [invite, newLink, endLink, list, update, made, removePasskey],
}

const listSessions = command({
  use: 'list',
  about: 'list the active sessions',
  examples: ['postern session list'],
  run: ({ call }) => listAll(call, 'session.list', {}),
  show: (sessions) =>
    listing(sessions, 'nobody is signed in', {
      id: ({ id }) => id,
      person: ({ name }) => name,
      by: ({ method }) => method,
      since: ({ createdAt }) => formatTime(createdAt),
      'last used': ({ seenAt }) => formatTimeAndAge(seenAt),
      browser: ({ agent }) => agent,
    }),
})

const endSession = command({
  use: 'end <session>',
  about: 'end a session by its id; takes effect for its next request',
  examples: ['postern session end ses_…'],
  run: ({ call }, [session]) => call('session.end', { params: { session } }),
  show: ({ id, name }) => `ended ${id} of ${name}`,
})

export const sessionCommands: CommandGroup = {
  name: 'session',
  about: 'list and end sessions of the console',
  commands: [listSessions, endSession],
}

const logIn = command({
  use: 'login',
  about: `print a link that signs you in once, within ${signInCodeMs / minuteMs} minutes`,
  options: [
    option('--as <name>', 'the person who signs in (default: your user name)'),
    roleOption('role of the person, if new (default: admin)'),
    repeatable('--app <app>', 'only for this app, if the person is new (repeatable)'),
  ],
  notes:
    'The person is created if the name is new. No password is needed: a user who can run this command can open the database anyway.',
  examples: ['postern console login', 'postern console login --as Ada --role operator'],
  async run({ call, deps }, _, { app, as = deps.user, role }: PermissionOptions & { as?: string }) {
    const minutes = signInCodeMs / minuteMs
    const people = await listAll(call, 'person.list', {})
    const isNamed = (wanted: string) => people.find(({ id, name }) => name === wanted || id === wanted)
    // Names of an OpenID provider are not ours: this command is the way in when nothing else is.
    const name = isNamed(as)?.provider == null ? as : `${as} (server)`
    const known = isNamed(name) !== undefined
    if (known && (role !== undefined || app !== undefined))
      throw new UsageError(`${name} exists: change role and apps with "postern person update"`)
    return known
      ? call('person.link', { params: { person: name }, body: { minutes } })
      : call('person.invite', {
          body: { name, role: role ?? 'admin', minutes, ...(app && { apps: app }) },
        })
  },
  ...link,
})

const logInHere: CommandSpec = {
  ...logIn,
  act(deps, args, options) {
    if (isRemote(deps)) throw new UsageError('run it on the server; leave out --url, and unset POSTERN_URL')
    return logIn.act(deps, args, options)
  },
}

export const consoleCommands: CommandGroup = {
  name: 'console',
  about: 'the console in the browser',
  commands: [logInHere],
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

const describeWays = ({ passkeys, provider }: PersonResource): string => {
  if (provider !== null) return new URL(provider).host
  return passkeys.length === 0 ? 'one-time links' : counted(passkeys.length, 'passkey')
}
