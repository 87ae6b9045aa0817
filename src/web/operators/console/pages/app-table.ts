/** The table of apps: how the mail of each goes today. */
import { formatCount, sumCounts } from '../../../../domain/counts.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html } from '../../../../templates/html.ts'
import { meter, renderLost, renderRefused, share, table } from '../parts.ts'
import { type Condition, countWaiting, renderStatus } from './problems.ts'

type Usage = Answer<'usage.list'>['items'][number]

export function renderAppTable({ items }: Answer<'usage.list'>, { attention, queue }: Answer<'status.show'>): Html {
  const rows = sortApps(items, attention).map((app) => {
    const { slug, name, status, accepted, delivered, failed, expired, bounced, refused, dailyLimit } = app
    const lost = failed + expired
    return [
      html`<a href="/apps/${slug}"><b>${name}</b></a> <span class="soft">${slug}</span>`,
      renderStatus(
        status,
        attention.filter(({ apps }) => apps.includes(slug)),
      ),
      formatCount(countWaiting(queue, slug)),
      formatCount(delivered),
      renderLost(lost, lost + delivered),
      formatCount(bounced),
      renderRefused(sumCounts(refused), accepted),
      html`${meter(accepted, dailyLimit, `${accepted} of ${dailyLimit} emails`)} ${share(accepted, dailyLimit)}`,
    ]
  })
  const heads = ['App', 'Status', 'Waiting', 'Delivered', 'Failed or expired', 'Bounced', 'Refused', 'Daily limit']
  const empty = 'No apps yet. An app is one product that sends sign-in mail.'
  return table('Apps', heads, rows, { numbers: [2, 3, 4, 5, 6], empty })
}

/** Apps that need attention first, the urgent ones before the others; then those that send most. */
function sortApps(items: readonly Usage[], attention: readonly Condition[]): readonly Usage[] {
  const rank = ({ slug }: Usage) =>
    Math.max(0, ...attention.filter(({ apps }) => apps.includes(slug)).map(({ urgent }) => (urgent ? 2 : 1)))
  return items.toSorted((a, b) => rank(b) - rank(a) || b.accepted - a.accepted)
}
