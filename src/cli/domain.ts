/** `postern domain …`: the domain of an app's From address, the keys that sign its mail, and its DNS. */
import { Option } from 'commander'
import { type SigningAlgorithm, signingAlgorithms } from '../domain/delivery/signing-key.ts'
import { formatZoneLine } from '../domain/dns/dkim-record.ts'
import type { SigningKeyResource } from '../management/domains/signing-keys.ts'
import type { Answer } from '../management/operations.ts'
import { type CommandGroup, command, option } from './command.ts'
import { confirm, yesOption } from './options.ts'
import { formatTime, listing, record } from './output.ts'

const show = command({
  use: 'show <app>',
  about: 'show the domain, its keys, and the records to publish',
  examples: ['postern domain show acme'],
  run: ({ call }, [app]) => call('domain.show', { params: { app } }),
  show({ apps, domain, keys }, [app]) {
    const head = record([
      ['domain', domain],
      ['apps', apps.join(', ')],
    ])
    if (keys.length === 0)
      return `${head}\n\nPostern does not sign its mail. If your relay does not sign it either, "postern domain add-key ${app}" makes a key.`
    const list = listing(keys, '', {
      key: ({ selector }) => selector,
      algorithm: ({ algorithm }) => algorithm,
      state: ({ state }) => state,
      since: ({ changedAt }) => formatTime(changedAt),
    })
    return [head, list, ...keys.map((key) => describeKey(key, app))].join('\n\n')
  },
})

const prove = command({
  use: 'prove <app> <domain>',
  about: 'add a sender domain whose DNS has the record that this command names',
  examples: ['postern domain prove acme mail.acme.test'],
  run: ({ call }, [app, domain]) => call('domain.prove', { params: { app }, body: { domain } }),
  show: ({ senderDomains, slug }) => `${slug} may send from ${senderDomains.join(', ')}`,
})

const addKey = command({
  use: 'add-key <app>',
  about: 'make a key; it signs once its record is in DNS and it is activated',
  options: [new Option('--algorithm <name>', 'rsa, or ed25519 in addition').choices(signingAlgorithms).default('rsa')],
  examples: ['postern domain add-key acme'],
  run: ({ call }, [app], { algorithm }: { algorithm: SigningAlgorithm }) =>
    call('domain.add_key', { params: { app }, body: { algorithm } }),
  show: (key, [app]) => describeKey(key, app),
})

const activateKey = command({
  use: 'activate-key <app> <selector>',
  about: 'sign with a key whose record is in DNS, and retire the one before it',
  options: [option('--unchecked', 'do not ask DNS first, where this machine cannot reach it')],
  examples: ['postern domain activate-key acme postern1'],
  run: ({ call }, [app, selector], { unchecked = false }: { unchecked?: boolean }) =>
    call('domain.activate_key', { params: { app, selector }, body: { unchecked } }),
  show: (_, [, selector]) => `${selector} signs within 30 s`,
})

const check = command({
  use: 'check <app>',
  about: 'check the DNS records that decide whether mail is accepted (keys, SPF, DMARC, MX), and the link domain',
  examples: ['postern domain check acme'],
  run: ({ call }, [app]) => call('domain.check', { params: { app } }),
  show: ({ lines }) => lines.map(describeLine).join('\n'),
  fault: ({ domain, ok }) => (ok ? null : `the check of ${domain} found faults; see above`),
})

const removeKey = command({
  use: 'remove-key <app> <selector>',
  about: 'remove a key; removing the active key stops signing',
  options: [yesOption()],
  examples: ['postern domain remove-key acme postern1'],
  async run({ call, deps }, [app, selector], { yes = false }: { yes?: boolean }) {
    const { domain, keys } = await call('domain.show', { params: { app } })
    const isActive = keys.some((key) => key.selector === selector && key.state === 'active')
    if (isActive && !yes)
      await confirm(deps, {
        question: `Mail from ${domain} is then not signed by this key.\nType ${selector} to remove it: `,
        answer: selector,
        none: 'nothing was removed',
        without: 'add --yes to remove an active key',
      })
    return { removed: await call('domain.remove_key', { params: { app, selector } }), domain }
  },
  document: ({ removed }) => removed,
  show: ({ domain }, [, selector]) => `removed ${selector} of ${domain}`,
})

export const domainCommands: CommandGroup = {
  name: 'domain',
  about: "check the domain of an app's From address, and manage the keys that sign its mail (DKIM)",
  commands: [show, prove, addKey, activateKey, check, removeKey],
}

type Line = Answer<'domain.check'>['lines'][number]

/** Its record, for a form of a DNS provider and for a zone file, and what to do next. */
function describeKey(key: SigningKeyResource, app: string): string {
  const { name, type, value } = key.record
  const fields = record([
    ['name', name],
    ['type', type],
    ['value', value],
  ])
  return `${fields}\n\nIn a zone file:\n${formatZoneLine(key.record)}\n\n${describeNext(key, app)}`
}

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

const marks = { ok: 'ok  ', warn: 'warn', fail: 'FAIL', unknown: '??  ' }

function describeLine({ check, found, message, name, publish, result }: Line): string {
  const lines = [`${marks[result]}  ${check.replace('_', ' ')} ${name}: ${message}`]
  if (result !== 'ok' && found !== null) lines.push(`        found: ${found}`)
  if (publish !== null) lines.push(`        publish: ${publish.name}. IN ${publish.type} ( ${publish.quoted} )`)
  return lines.join('\n')
}
