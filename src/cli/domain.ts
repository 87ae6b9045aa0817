/** `postern domain …`: the domain of an app's From address, the keys that sign its mail, and its DNS. */
import { type Command, Option } from 'commander'
import { type SigningAlgorithm, signingAlgorithms } from '../domain/delivery/signing-key.ts'
import type { SigningKeyResource } from '../management/domains/signing-key-resource.ts'
import type { Answer } from '../management/operations.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { CommandFailed, formatTime, print, record, table } from './output.ts'

export function addDomainCommands(program: Command, deps: CliDeps): void {
  const domain = program
    .command('domain')
    .description("check the domain of an app's From address, and manage the keys that sign its mail (DKIM)")
  domain
    .command('show <app>')
    .description('show the domain, its keys, and the records to publish')
    .action((app: string) =>
      withOperations(deps, async ({ call }) => {
        const shown = await call('domain.show', { params: { app } })
        print(deps.output, shown, () => describeDomain(shown, app))
      }),
    )
  domain
    .command('prove <app> <domain>')
    .description('add a sender domain whose DNS has the record that this command names')
    .action((app: string, name: string) =>
      withOperations(deps, async ({ call }) => {
        const changed = await call('domain.prove', { params: { app }, body: { domain: name } })
        print(deps.output, changed, () => `${changed.slug} may send from ${changed.senderDomains.join(', ')}`)
      }),
    )
  domain
    .command('add-key <app>')
    .description('make a key; it signs once its record is in DNS and it is activated')
    .addOption(
      new Option('--algorithm <name>', 'rsa, or ed25519 in addition')
        .choices(signingAlgorithms)
        .default('rsa'),
    )
    .action((app: string, { algorithm }: { algorithm: SigningAlgorithm }) =>
      withOperations(deps, async ({ call }) => {
        const key = await call('domain.add_key', { params: { app }, body: { algorithm } })
        print(deps.output, key, () => `${describeRecord(key)}\n\n${describeNext(key, app)}`)
      }),
    )
  domain
    .command('activate-key <app> <selector>')
    .description('sign with a key whose record is in DNS, and retire the one before it')
    .option('--unchecked', 'do not ask DNS first, where this machine cannot reach it')
    .action((app: string, selector: string, { unchecked = false }: { unchecked?: boolean }) =>
      withOperations(deps, async ({ call }) => {
        const input = { params: { app, selector }, body: { unchecked } }
        const key = await call('domain.activate_key', input)
        print(deps.output, key, () => `${selector} signs within 30 s`)
      }),
    )
  domain
    .command('check <app>')
    .description('ask DNS whether mail from the domain arrives: keys, SPF, DMARC, MX')
    .action((app: string) => withOperations(deps, (context) => check(deps, context, app)))
  domain
    .command('remove-key <app> <selector>')
    .description('remove a key; the domain of an active one is then signed no longer')
    .option('--yes', 'do not ask')
    .action((app: string, selector: string, { yes = false }: { yes?: boolean }) =>
      withOperations(deps, (context) => removeKey(deps, context, { app, selector, yes })),
    )
}

type Shown = Answer<'domain.show'>
type Line = Answer<'domain.check'>['lines'][number]

function describeDomain({ apps, domain, keys }: Shown, app: string): string {
  const head = record([
    ['domain', domain],
    ['apps', apps.join(', ')],
  ])
  if (keys.length === 0)
    return `${head}\n\nPostern does not sign its mail. If your relay does not sign it either, "postern domain add-key ${app}" makes a key.`
  const rows = keys.map(({ selector, algorithm, state, changedAt }) => [
    selector,
    algorithm,
    state,
    formatTime(changedAt),
  ])
  const records = keys.map((key) => `${describeRecord(key)}\n\n${describeNext(key, app)}`)
  return [head, table(['key', 'algorithm', 'state', 'since'], rows), ...records].join('\n\n')
}

/** For a form of a DNS provider, and for a zone file. */
const describeRecord = ({ record: { name, quoted, type, value } }: SigningKeyResource): string =>
  `${record([
    ['name', name],
    ['type', type],
    ['value', value],
  ])}\n\nIn a zone file:\n${name}. IN ${type} ( ${quoted} )`

function describeNext({ selector, state }: SigningKeyResource, app: string): string {
  switch (state) {
    case 'pending':
      return `Publish this record, then run "postern domain activate-key ${app} ${selector}".`
    case 'active':
      return 'This key signs. Keep its record.'
    case 'retired':
      return `Another key signs. Keep this record for 7 days; then remove it, and run "postern domain remove-key ${app} ${selector}".`
    default:
      return state satisfies never
  }
}

async function check(deps: CliDeps, { call }: CommandContext, app: string): Promise<void> {
  const checked = await call('domain.check', { params: { app } })
  print(deps.output, checked, () => checked.lines.map(describeLine).join('\n'))
  if (!checked.ok) throw new CommandFailed(`the DNS of ${checked.domain} has faults; see above`)
}

const marks = { ok: 'ok  ', warn: 'warn', fail: 'FAIL', unknown: '??  ' }

function describeLine({ check, found, message, name, publish, result }: Line): string {
  const lines = [`${marks[result]}  ${check.replace('_', ' ')} ${name}: ${message}`]
  if (result !== 'ok' && found !== null) lines.push(`        found: ${found}`)
  if (publish !== null)
    lines.push(`        publish: ${publish.name}. IN ${publish.type} ( ${publish.quoted} )`)
  return lines.join('\n')
}

type Removal = { readonly app: string; readonly selector: string; readonly yes: boolean }

async function removeKey(
  deps: CliDeps,
  { call }: CommandContext,
  { app, selector, yes }: Removal,
): Promise<void> {
  const { domain, keys } = await call('domain.show', { params: { app } })
  const isActive = keys.some((key) => key.selector === selector && key.state === 'active')
  if (isActive && !yes) await confirmRemoval(deps, selector, domain)
  const removed = await call('domain.remove_key', { params: { app, selector } })
  print(deps.output, removed, () => `removed ${selector} of ${domain}`)
}

async function confirmRemoval({ ask }: CliDeps, selector: string, domain: string): Promise<void> {
  const answer = await ask(
    `Mail from ${domain} is then not signed by this key.\nType ${selector} to remove it: `,
  )
  if (answer === null) throw new CommandFailed(`nothing was removed: add --yes to remove an active key`)
  if (answer.trim() !== selector) throw new CommandFailed('nothing was removed')
}
