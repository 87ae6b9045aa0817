/** `postern inbox …`: the emails that test keys sent in the last hour. */
import { testDomain } from '../domain/app/test-side.ts'
import { inboxPageMax, inboxWaitMaxS } from '../domain/bounds.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import type { Answer } from '../management/operations.ts'
import { type CommandGroup, command, option } from './command.ts'
import { emailTypeOption, numberParser } from './options.ts'
import { formatTime, listing, record } from './output.ts'

type Filters = { to?: string; type?: EmailType }

const filterOptions = () => [option('--to <address>', 'filter by recipient'), emailTypeOption()]

const list = command({
  use: 'list <app>',
  about: 'list the emails that test keys of an app sent in the last hour, newest first',
  options: [
    ...filterOptions(),
    option('--limit <n>', 'maximum rows', numberParser('--limit', ` from 1 to ${inboxPageMax}`, inboxPageMax)).default(
      20,
    ),
  ],
  examples: [`postern inbox list acme --to delivered+ada@${testDomain}`],
  run: async ({ call }, [app], query: Filters & { limit: number }) =>
    (await call('inbox.list', { params: { app }, query })).items,
  show: (emails, [app]) =>
    listing(emails, `no email of a test key; "postern key create ${app} --test" makes a test key`, {
      id: ({ id }) => id,
      type: ({ type }) => type,
      to: ({ to }) => to,
      received: ({ receivedAt }) => formatTime(receivedAt),
      url: ({ url }) => url,
    }),
})

const wait = command({
  use: 'wait <app>',
  about: 'wait for an email of a test key, and show its link and its text',
  options: [
    ...filterOptions(),
    option('--after <seq>', 'only emails after the one with this seq'),
    option(
      '--timeout <seconds>',
      'how long to wait',
      numberParser('--timeout', ` from 1 to ${inboxWaitMaxS}`, inboxWaitMaxS),
    ),
  ],
  examples: [`postern inbox wait acme --to delivered+ada@${testDomain} --type magic_link`],
  run: ({ call }, [app], query: Filters & { after?: string; timeout?: number }) =>
    call('inbox.wait', { params: { app }, query }),
  show: describe,
})

function describe(email: Answer<'inbox.wait'>): string {
  const facts = record([
    ['id', email.id],
    ['seq', email.seq],
    ['type', email.type],
    ['to', email.to],
    ['from', email.from],
    ['subject', email.subject],
    ['link', email.url],
    ['code', email.code],
    ['received', formatTime(email.receivedAt)],
  ])
  return `${facts}\n\n${email.text}`
}

export const inboxCommands: CommandGroup = {
  name: 'inbox',
  about: 'list the emails of test keys, and wait for one',
  commands: [list, wait],
}
