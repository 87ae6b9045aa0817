/** `postern hook …`: auth servers that post their mail to an app. */
import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { operatorBodyBytesMax } from '../domain/bounds.ts'
import { formatCount } from '../domain/counts.ts'
import { dayMs } from '../domain/duration.ts'
import { type HookSystemName, hookSystemNames, unknownHooksUrl } from '../domain/hooks/hook-settings.ts'
import type { Step } from '../domain/hooks/hook-system.ts'
import { findSystem } from '../domain/hooks/systems.ts'
import type { Answer } from '../management/operations.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { parseGrace } from './key.ts'
import { CommandFailed, formatTime, print, record, table, UsageError } from './output.ts'

const secretCharactersMax = 500
/** No body of an operation is longer. */
const payloadMax = operatorBodyBytesMax - 1024

const connectHelp = `
The secret is printed once. Zitadel makes its secret itself: it is read from standard input.

Examples:
  postern hook connect acme supabase
  postern hook connect acme zitadel < signing-key`

export function addHookCommands(program: Command, deps: CliDeps): void {
  const hook = program
    .command('hook')
    .description('let an auth server post its mail to an app: Supabase, Kratos, Zitadel, Logto')
  hook
    .command('list <app>')
    .description('list the auth servers of an app, with their secrets')
    .action((app: string) => withOperations(deps, (context) => list(deps, context, app)))
  hook
    .command('connect <app> <system>')
    .description('make the secret of an auth server, and print what to do there')
    .option('--given', 'read a secret that the auth server made from standard input')
    .addOption(
      new Option('--grace <time>', 'how long the secret before keeps working: 0, 30m, 24h or 7d')
        .argParser(parseGrace)
        .default(dayMs, '1d'),
    )
    .addHelpText('after', connectHelp)
    .action((app: string, system: string, options: ConnectOptions) =>
      withOperations(deps, (context) =>
        connect(deps, context, { app, system: parseSystem(system), ...options }),
      ),
    )
  hook
    .command('check <app> <system> [file]')
    .description('say what becomes of its messages: of a payload (JSON), or of a sample of each kind')
    .action((app: string, system: string, file: string | undefined) =>
      withOperations(deps, (context) => check(deps, context, { app, system: parseSystem(system), file })),
    )
}

type ConnectOptions = { readonly given?: boolean; readonly grace: number }

function parseSystem(name: string): HookSystemName {
  const known = hookSystemNames.find((each) => each === name)
  if (known !== undefined) return known
  throw new UsageError(`"${name}" is no auth server that Postern knows: ${hookSystemNames.join(', ')}`)
}

async function list(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const hooks = await call('hook.list', { params: { app } })
  print(deps.output, hooks, () => {
    const rows = hooks.items.map(({ system, url, secrets }) => {
      const [newest] = secrets.toReversed()
      const lastUsedAt = newest?.lastUsedAt ?? null
      const used = lastUsedAt === null ? 'not used yet' : `last used ${formatTime(lastUsedAt)}`
      return [system, secrets.length === 0 ? 'not connected' : used, url]
    })
    const unknown = hooks.items.some(({ url }) => url.startsWith(unknownHooksUrl))
      ? '\n\nThe public address is unknown: set POSTERN_HOOKS_URL, and POSTERN_HOOKS_LISTEN where the service runs.'
      : ''
    return `${table(['system', 'secret', 'posts to'], rows)}${unknown}\n\nNext: postern hook connect ${app} SYSTEM`
  })
}

type Connection = ConnectOptions & { readonly app: string; readonly system: HookSystemName }

async function connect(
  deps: CliDeps,
  { call }: CommandContext,
  { app, system, given = false, grace }: Connection,
): Promise<void> {
  const auth = findSystem(system)?.auth
  const isGiven = given || (auth?.kind === 'signed' && auth.makeSecret === null)
  const read = async () => (await deps.ask('The secret: ')) ?? (await deps.readInput(secretCharactersMax))
  const secret = isGiven ? (await read()).trim() : undefined
  const body = { graceSeconds: grace / 1000, ...(secret !== undefined && { secret }) }
  const made = await call('hook.connect', { params: { app, system }, body })
  print(deps.output, made, () => {
    const parts = record([
      ['posts to', made.url],
      ['secret', isGiven ? 'the one that you gave' : `${made.secret}  (shown only now)`],
      ['old secret', made.oldExpiresAt === null ? null : `works until ${formatTime(made.oldExpiresAt)}`],
    ])
    return [parts, ...made.steps.map(describeStep), `Then: postern hook check ${app} ${system}`].join('\n\n')
  })
}

const describeStep = ({ text, block }: Step, n: number): string =>
  `${n + 1}. ${text}${block === undefined ? '' : `\n\n${block}`}`

type Checking = { readonly app: string; readonly system: HookSystemName; readonly file: string | undefined }

async function check(
  deps: CliDeps,
  { call }: CommandContext,
  { app, system, file }: Checking,
): Promise<void> {
  const payload = file === undefined ? undefined : parsePayload(await readPayload(deps, file))
  const body = payload === undefined ? {} : { payload }
  const { items } = await call('hook.check', { params: { app, system }, body })
  print(deps.output, { items }, () => items.map(describeItem).join('\n'))
  const refused = items.filter(({ result }) => result === 'refused').length
  if (refused > 0) throw new CommandFailed(`${refused} of ${items.length} would be refused; see above`)
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

type Item = Answer<'hook.check'>['items'][number]

function describeItem({ message, result, type, purpose, hosted, code, refusal, issues }: Item): string {
  const name = message ?? 'the payload'
  if (result === 'not_sent') return `--    ${name}: a notice, answered and not sent`
  if (refusal === null) {
    const kind = purpose === null ? type : `${type} (${purpose})`
    const parts = [hosted ? 'hosted link' : 'link to the app', ...(code ? ['code'] : [])]
    return `ok    ${name}: ${kind}, ${parts.join(' and ')}`
  }
  const faults = issues.map(({ field, message: text }) => `        ${field}: ${text}`)
  return [
    `FAIL  ${name}: ${refusal.code}`,
    ...(faults.length > 0 ? faults : [`        ${refusal.message}`]),
  ].join('\n')
}
