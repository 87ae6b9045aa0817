/** `postern forget`: deletes what an address has left behind. */
import { counted } from '../domain/counts.ts'
import type { Answer } from '../management/operations.ts'
import { command, option } from './command.ts'
import { confirm, yesOption } from './options.ts'
import { listing } from './output.ts'

type Forgotten = Answer<'recipient.forget'>
type Counts = Pick<Forgotten, 'cancelled' | 'records' | 'refusals' | 'suppressions'>

export const forgetCommand = command({
  use: 'forget <address>',
  about: 'delete the data about an address in all apps, and list what is kept and why',
  options: [option('--suppressions', 'also remove its suppressions, so that mail to it is sent again'), yesOption()],
  notes: `Queued emails to the address are cancelled, and the records of its emails are deleted. Log files, backups, the relay
and your apps are not changed.`,
  examples: ['postern forget ana@example.com'],
  async run({ call, deps }, [to], { suppressions = false, yes = false }: { suppressions?: boolean; yes?: boolean }) {
    if (!yes)
      await confirm(deps, {
        question: `This cancels the queued emails to ${to} and deletes its records for good.\nType yes to continue: `,
        answer: 'yes',
        none: 'nothing was deleted',
        without: 'add --yes to delete without confirmation',
      })
    const total = { cancelled: 0, records: 0, refusals: 0, suppressions: 0 }
    let after = {}
    for (;;) {
      const step: Forgotten = await call('recipient.forget', { body: { to, suppressions, ...after } })
      for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += step[name]
      const { next, ...answer } = step
      if (next === null) return { ...answer, ...total }
      after = { after: next }
    }
  },
  show: ({ kept, ...counts }) => `${describe(counts)}
Kept:
${listing(kept, 'nothing', { what: ({ what }) => what, days: ({ days }) => String(days), why: ({ why }) => why })}`,
  fault: ({ left }) =>
    left === 0 ? null : `${counted(left, 'email')} to it were being sent meanwhile: run the command again in a minute`,
})

const describe = ({ cancelled, records, refusals, suppressions }: Counts): string =>
  `deleted ${counted(records, 'record')} (${cancelled} cancelled now) and ${counted(suppressions, 'suppression')}; cleared the recipient of ${counted(refusals, 'refused request')}`
