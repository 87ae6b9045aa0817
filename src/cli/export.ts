/** `postern export`: a list as CSV, for spreadsheets; with `--json`, as JSON. */
import { toCsv } from '../domain/csv.ts'
import type { CallInput } from '../management/operations.ts'
import { command, given, option } from './command.ts'
import { pastOption } from './options.ts'

type Exported = CallInput<'list.export'>['body']

export const exportCommand = command({
  use: 'export <list>',
  about: 'print a list as CSV, newest first: emails, refusals, suppressions or audit',
  options: [
    option('--app <app>', 'filter by app'),
    pastOption('--since', 'since: 10m (ago), 2h, 3d, 2027-01-31 or an ISO 8601 timestamp; not for suppressions'),
    pastOption('--until', 'until: the same forms'),
  ],
  examples: ['postern export emails --app acme --since 7d > emails.csv'],
  run: ({ call }, [list], filters: Record<string, string>) =>
    call('list.export', {
      body: { list: list as Exported['list'], filters: given(filters) as Record<string, string> },
    }),
  document: ({ items }) => items,
  show: ({ items }) => toCsv(items, '\n').trimEnd(),
  aside: ({ complete, items }) =>
    complete ? `${items.length} items` : `the newest ${items.length} items; give --since and --until for others`,
})
