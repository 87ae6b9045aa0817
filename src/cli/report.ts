/** `postern report …`: reports about emails that a relay had taken. */
import { readFileSync } from 'node:fs'
import { reportedDays, reportMax, reportTextMax } from '../domain/bounds.ts'
import { counted, formatCount, sumCounts } from '../domain/counts.ts'
import { type CommandGroup, type CommandSpec, command, given, option } from './command.ts'
import { CommandFailed, formatTimeAndAge, record, UsageError } from './output.ts'

const status = command({
  use: 'status',
  about: `show where reports come in, and the bounces and complaints of the last ${reportedDays} days`,
  examples: ['postern report status'],
  run: ({ call }) => call('report.show', {}),
  show({ apps, bounceAddress, bounced, bounceListener, complained, reportsListener, providers, sources }) {
    const causes = Object.entries(bounced).toSorted(([, a], [, b]) => b - a)
    return record([
      ['bounce address', bounceAddress ?? 'none: bounces go to the senders (POSTERN_BOUNCE_ADDRESS)'],
      ['apps with their own', apps.join(' ')],
      ['bounce listener', bounceListener ?? 'not configured here (POSTERN_BOUNCE_LISTEN)'],
      ['reports listener', reportsListener ?? 'not configured here (POSTERN_REPORTS_LISTEN)'],
      ['accepts calls of', providers.join(', ')],
      [
        'last reports',
        sources.map(({ heardAt, source }) => `${source} ${formatTimeAndAge(heardAt)}`).join(', ') || 'none yet',
      ],
      [`last ${reportedDays} days`, `${formatCount(sumCounts(bounced))} bounced, ${counted(complained, 'complaint')}`],
      ['causes', causes.map(([cause, count]) => `${formatCount(count)} × ${cause}`).join(', ')],
    ])
  },
})

type ReadOptions = { recipient?: string; dryRun?: boolean }

const read = command({
  use: 'read [file]',
  about: 'read a report about an email, and record it',
  options: [
    option('--recipient <address>', 'the address that the report was sent to'),
    option('--dry-run', 'explain the report, and record nothing'),
  ],
  notes: `FILE is a report as it came, headers first; without FILE, or with "-", it is read from standard input. Programs that
fetch mail, such as fetchmail, getmail and Sieve, can hand reports over in this way.

Exit code: 0 if the report was recorded or was known already, 1 if it is none that counts, 75 if it could not be judged
or its email is still in the queue: then programs that deliver mail keep it, and hand it over again.`,
  examples: ['postern report read --dry-run < bounce.eml'],
  async run({ call, deps }, [file = '-']: readonly [string | undefined], { recipient, dryRun = false }: ReadOptions) {
    const text = file === '-' ? await deps.readInput(reportMax) : readFile(file)
    if (text.trim() === '') throw new NoReport('the report is empty')
    return call('report.read', { body: { report: fit(text), dryRun, ...given({ recipient }) } })
  },
  show({ about, cause, email, explanation, finding, form, permanent, reply }) {
    const details = record([
      ['report', `${finding.replaceAll('_', ' ')}, ${form === 'fields' ? 'in fields' : 'in prose'}`],
      ['about', about],
      ['cause', cause === null ? null : `${cause}${permanent === true ? '' : ', not permanent'}`],
      ['reply', reply],
      ['email', email?.id],
      ['its state', email?.state],
    ])
    return `${explanation}\n\n${details}`
  },
  fault({ result }) {
    if (result === 'recorded' || result === 'already') return null
    throw new (result === 'waiting' ? CommandFailed : NoReport)('the report was not recorded; see above')
  },
})

/** A failure other than that the report does not count may pass: programs then try again. */
const readOrPostpone: CommandSpec = {
  ...read,
  act: async (...given) => read.act(...given)?.catch(postpone),
}

export const reportCommands: CommandGroup = {
  name: 'report',
  about: 'reports about sent emails: bounces and complaints',
  commands: [status, readOrPostpone],
}

/** The report was judged, and does not count. */
class NoReport extends CommandFailed {}

/** EX_TEMPFAIL of sysexits.h. */
const tryLater = 75

function postpone(error: Error): never {
  const isFinal = error instanceof NoReport || error instanceof UsageError
  throw isFinal ? error : Object.assign(error, { exitCode: tryLater })
}

function readFile(path: string): string {
  try {
    return readFileSync(path).subarray(0, reportMax).toString()
  } catch (error) {
    throw new CommandFailed(`cannot read ${path}: ${(error as Error).message}`)
  }
}

/** The beginning, which has the fields of a report, as text that the API takes. */
function fit(report: string): string {
  let text = report.slice(0, reportTextMax).replaceAll('\0', '').toWellFormed()
  while (Buffer.byteLength(JSON.stringify(text)) > reportTextMax) text = text.slice(0, 0.9 * text.length)
  return text.toWellFormed()
}
