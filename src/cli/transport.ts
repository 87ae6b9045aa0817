/** `postern transport …`: lists of relays that apps may use instead of those of the service. */
import { relaysPerTransport } from '../domain/delivery/transport.ts'
import { type CommandGroup, command, option } from './command.ts'
import { CommandFailed, describeFindings, formatTime, listing } from './output.ts'

/** Five URLs with the keys of service accounts in them. */
const inputCharactersMax = 50_000

const add = command({
  use: 'add <name>',
  about: 'add a transport; the URLs of its relays are read from standard input',
  options: [option('--replace', 'replace the relays of an existing transport')],
  notes: `Write 1 to ${relaysPerTransport} URLs as in POSTERN_SMTP_URL, one a line, in the order in which they are tried. They are stored encrypted and never shown again.`,
  examples: ['postern transport add acme < relays.txt', 'postern transport add acme --replace < relays.txt'],
  async run({ call, deps }, [transport], { replace = false }: { replace?: boolean }) {
    const { items } = await call('transport.list', {})
    const isThere = items.some(({ name }) => name === transport)
    if (isThere && !replace)
      throw new CommandFailed(`there is a transport ${transport} already: add --replace to give it other relays`)
    if (!isThere && replace) throw new CommandFailed(`there is no transport ${transport} to replace`)
    const text = (await deps.ask('The URL of the relay: ')) ?? (await deps.readInput(inputCharactersMax))
    const relays = text.split(/[\s,]+/).filter(Boolean)
    if (relays.length === 0) throw new CommandFailed('no URL of a relay on standard input')
    return call('transport.put', { params: { transport }, body: { relays } })
  },
  show: ({ apps, name, relays }) => {
    const next = apps.length === 0 ? `, then "postern app update APP --transport ${name}"` : ''
    return `${name} uses ${relays.join(', ')}, within 5 seconds. Check it with "postern transport check ${name}"${next}`
  },
})

const list = command({
  use: 'list',
  about: 'list the transports, their relays and the apps that use them',
  examples: ['postern transport list'],
  run: async ({ call }) => (await call('transport.list', {})).items,
  show: (transports) =>
    listing(transports, 'no transports: all mail goes through the relays of POSTERN_SMTP_URL', {
      name: ({ name }) => name,
      relays: ({ fault, relays }) => (fault === null ? relays.join(' ') : fault),
      apps: ({ apps }) => apps.join(' ') || 'none',
      changed: ({ changedAt }) => formatTime(changedAt),
    }),
})

const check = command({
  use: 'check <name>',
  about: 'connect to the relays of a transport and log in; sends no email',
  examples: ['postern transport check acme'],
  run: ({ call }, [transport]) => call('transport.check', { params: { transport } }),
  show: ({ findings }) => describeFindings(findings),
  fault: ({ ok }) =>
    ok ? null : 'the check failed; "postern transport add NAME --replace" gives a transport other relays',
})

const remove = command({
  use: 'remove <name>',
  about: 'remove a transport that no app uses',
  examples: ['postern transport remove acme'],
  run: ({ call }, [transport]) => call('transport.delete', { params: { transport } }),
  show: ({ name }) => `removed ${name}`,
})

export const transportCommands: CommandGroup = {
  name: 'transport',
  about: 'separate relays for some apps',
  commands: [add, list, check, remove],
}
