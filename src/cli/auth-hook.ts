/** `postern auth-hook …`: auth servers that post their mail to an app, or send it over SMTP. */
import { readFileSync } from 'node:fs'
import type { Step } from '../domain/auth-hooks/auth-hook.ts'
import {
  type AuthHookName,
  unknownAuthHooksUrl,
  unknownSubmissionUrl,
} from '../domain/auth-hooks/auth-hook-settings.ts'
import { authHookNames, findSystem } from '../domain/auth-hooks/auth-hooks.ts'
import { operatorBodyBytesMax } from '../domain/bounds.ts'
import { formatCount } from '../domain/counts.ts'
import type { Answer } from '../management/operations.ts'
import { type CommandGroup, command, option } from './command.ts'
import type { CliDeps } from './context.ts'
import { graceOption } from './options.ts'
import { CommandFailed, formatTime, listing, record, UsageError } from './output.ts'

const secretCharactersMax = 500
/** No body of an operation is longer. */
const payloadMax = operatorBodyBytesMax - 1024

const unknownAddresses = [
  { begin: unknownAuthHooksUrl, names: 'POSTERN_AUTH_HOOKS_URL and POSTERN_AUTH_HOOKS_LISTEN' },
  { begin: unknownSubmissionUrl, names: 'POSTERN_SUBMISSION_URL and POSTERN_SUBMISSION_LISTEN' },
]

const list = command({
  use: 'list <app>',
  about: 'list the auth servers of an app, with their secrets',
  examples: ['postern auth-hook list acme'],
  run: ({ call }, [app]) => call('auth_hook.list', { params: { app } }),
  show({ items }, [app]) {
    const table = listing(items, '', {
      system: ({ system }) => system,
      secret: ({ secrets }) => describeUse(secrets),
      'sends to': ({ url }) => url,
    })
    const unknown = unknownAddresses
      .filter(({ begin }) => items.some(({ url }) => url.startsWith(begin)))
      .map(({ names }) => `The public address is unknown: set ${names} where the service runs.`)
    return `${[table, ...unknown].join('\n\n')}\n\nNext: postern auth-hook connect ${app} SYSTEM`
  },
})

function describeUse(secrets: Answer<'auth_hook.list'>['items'][number]['secrets']): string {
  if (secrets.length === 0) return 'not connected'
  const lastUsedAt = secrets.at(-1)?.lastUsedAt ?? null
  return lastUsedAt === null ? 'not used yet' : `last used ${formatTime(lastUsedAt)}`
}

type ConnectOptions = { readonly given?: boolean; readonly grace: number }

const connect = command({
  use: 'connect <app> <system>',
  about: 'make the secret of an auth server, and print what to do there',
  options: [
    option('--given', 'read a secret that the auth server made from standard input'),
    graceOption('how long the secret before keeps working', '1d'),
  ],
  notes: 'The secret is printed once. Zitadel makes its secret itself: it is read from standard input.',
  examples: [
    'postern auth-hook connect acme supabase',
    'postern auth-hook connect acme zitadel < signing-key',
    'postern auth-hook connect acme gitea',
  ],
  async run({ call, deps }, [app, name], { given = false, grace }: ConnectOptions) {
    const system = parseSystem(name)
    const auth = findSystem(system)?.auth
    const isGiven = given || (auth?.kind === 'signed' && auth.makeSecret === null)
    const read = async () => (await deps.ask('The secret: ')) ?? (await deps.readInput(secretCharactersMax))
    const secret = isGiven ? (await read()).trim() : undefined
    const body = { graceSeconds: grace / 1000, ...(secret !== undefined && { secret }) }
    return { made: await call('auth_hook.connect', { params: { app, system }, body }), isGiven }
  },
  document: ({ made }) => made,
  show({ made, isGiven }, [app, system]) {
    const parts = record([
      ['sends to', made.url],
      ['secret', isGiven ? 'the one that you gave' : `${made.secret}  (shown only now)`],
      ['old secret', made.oldExpiresAt === null ? null : `works until ${formatTime(made.oldExpiresAt)}`],
    ])
    return [parts, ...describeSteps(made.steps), `Then: postern auth-hook check ${app} ${system}`].join('\n\n')
  },
})

function describeSteps(steps: readonly Step[]): string[] {
  const at = (wanted: Step['place']) => steps.filter(({ place }) => place === wanted)
  const describe = ({ text, block }: Step, begin: string) =>
    `${begin}${text}${block === undefined ? '' : `\n\n${block}`}`
  return [
    ...at(undefined).map((step, n) => describe(step, `${n + 1}. `)),
    ...at('instead').map((step) => describe(step, 'Instead of these steps: ')),
    ...at('postern').map((step) => describe(step, 'In Postern: ')),
  ]
}

const check = command({
  use: 'check <app> <system> [file]',
  about: 'say what would happen to its messages: to a payload (JSON), a saved message, or a sample of each kind',
  examples: ['postern auth-hook check acme kratos payload.json', 'postern auth-hook check acme gitea message.eml'],
  async run({ call, deps }, [app, name, file]: readonly [string, string, string | undefined]) {
    const system = parseSystem(name)
    const text = file === undefined ? undefined : await readPayload(deps, file)
    const isMail = findSystem(system)?.auth.kind === 'login'
    const payload = text === undefined || isMail ? text : parsePayload(text)
    const body = payload === undefined ? {} : { payload }
    const { items } = await call('auth_hook.check', { params: { app, system }, body })
    return { items }
  },
  show: ({ items }, [, , file]) =>
    [...items.map(describeItem), ...(file === undefined ? [aboutSamples(items)] : [])].join('\n'),
  fault({ items }) {
    const refused = items.filter(({ result }) => result === 'refused').length
    return refused > 0 ? `${refused} of ${items.length} would be refused; see above` : null
  },
})

export const authHookCommands: CommandGroup = {
  name: 'auth-hook',
  about: 'let an auth server post its mail to an app, or send it over SMTP: Supabase, Keycloak, Gitea, Django, …',
  commands: [list, connect, check],
}

function parseSystem(name: string): AuthHookName {
  const known = authHookNames.find((each) => each === name)
  if (known !== undefined) return known
  throw new UsageError(
    `Postern does not know "${name}". It knows: ${authHookNames.join(', ')} (smtp is any other program)`,
  )
}

async function readPayload(deps: CliDeps, file: string): Promise<string> {
  const text = file === '-' ? await deps.readInput(payloadMax + 1) : readFile(file)
  if (Buffer.byteLength(text) > payloadMax)
    throw new CommandFailed(`the payload has more than ${formatCount(payloadMax)} bytes`)
  return text
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new CommandFailed(`cannot read ${path}`)
  }
}

function parsePayload(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new CommandFailed('the payload is not valid JSON')
  }
}

type Item = Answer<'auth_hook.check'>['items'][number]

const aboutSamples = (items: readonly Item[]): string =>
  items.length === 0
    ? 'No samples: only your own rules count. Save a message, and give its file.'
    : 'The hosts of these samples count as allowed. Real links must be on the allow-list.'

function describeItem({ message, result, type, purpose, hosted, code, refusal, issues }: Item): string {
  const name = message ?? 'the message'
  if (result === 'not_sent') return `--    ${name}: a notice, answered and not sent`
  if (refusal === null) {
    const kind = purpose === null ? type : `${type} (${purpose})`
    const parts = [hosted ? 'hosted link' : 'link to the app', ...(code ? ['code'] : [])]
    return `ok    ${name}: ${kind}, ${parts.join(' and ')}`
  }
  const faults = issues.map(({ field, message: text }) => `        ${field}: ${text}`)
  return [`FAIL  ${name}: ${refusal.code}`, ...(faults.length > 0 ? faults : [`        ${refusal.message}`])].join('\n')
}
