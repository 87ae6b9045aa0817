/**
 * Mail servers that call so many mailboxes missing that none is believed; apps whose delivered mail bounces,
 * or is reported as spam, more often than mailbox providers accept; and sources of reports that fell silent.
 */
import { latelyMinutes, reportedDays } from '../../domain/bounds.ts'
import { formatCount, sumCounts } from '../../domain/counts.ts'
import { isMassBounce } from '../../domain/delivery/suppression.ts'
import { dayMs, describeDuration } from '../../domain/duration.ts'
import type { HeardSource } from '../../store/report-store.ts'
import type { Condition, Situation } from './condition.ts'

/** Mail services review accounts with 5 % bounces; Gmail asks for less than 0.3 % complaints. */
const bounces = { min: 20, share: 0.05 }
const complaints = { min: 3, share: 0.003 }

type Bound = typeof bounces

const isReached = (count: number, delivered: number, { min, share }: Bound): boolean =>
  count >= min && count >= share * delivered

const lately = `in the last ${reportedDays} days`

/** Nothing is said of a disabled app, which sends no more. */
export const judgeReports = ({ apps, reported }: Pick<Situation, 'apps' | 'reported'>): Condition[] =>
  apps
    .filter(({ status }) => status === 'active')
    .flatMap(({ id, slug }): Condition[] => {
      const { delivered = 0, bounced = 0, complained = 0 } = reported.get(id) ?? {}
      // Reports may be of emails that were delivered before.
      const of = (count: number) => formatCount(Math.max(delivered, count))
      const found: Condition[] = []
      if (isReached(bounced, delivered, bounces))
        found.push({
          kind: 'bounces_many',
          message: `${formatCount(bounced)} of ${of(bounced)} delivered emails from ${slug} bounced ${lately}. Providers begin to refuse senders whose mail bounces so often. The usual cause is addresses that people mistype or make up.`,
          apps: [slug],
        })
      if (isReached(complained, delivered, complaints))
        found.push({
          kind: 'complaints_many',
          message: `${formatCount(complained)} of ${of(complained)} delivered emails from ${slug} were reported as spam ${lately}. Providers begin to put all of a sender’s mail into the spam folder. The usual cause is somebody who enters the addresses of other people.`,
          apps: [slug],
        })
      return found
    })

/** So much delivered mail has a bounce among it, usually. */
const heardAmong = 500
/** A source that is silent for longer was probably given up. */
const silentMaxDays = 30

/** Sources that were heard before; an operator gives a report now and then. */
export function judgeSilence({
  nowMs,
  reported,
  seesAll,
  sources,
}: Pick<Situation, 'nowMs' | 'reported' | 'seesAll' | 'sources'>): Condition[] {
  const delivered = [...reported.values()].reduce((sum, counts) => sum + (counts.delivered ?? 0), 0)
  const silent = sources.filter(({ heardAt, source }) => {
    const days = (nowMs - heardAt) / dayMs
    return source !== 'read' && days > reportedDays && days < silentMaxDays
  })
  if (!seesAll || delivered < heardAmong || silent.length === 0) return []
  const names = silent.map(({ heardAt, source }) => `${nameSource(source)} for ${describeDuration(nowMs - heardAt)}`)
  const message = `No report has come from ${names.join(', and from ')}, though ${formatCount(delivered)} emails were delivered ${lately}. Perhaps a webhook was disabled, a secret changed, or mail to the bounce addresses is lost. Without reports, dead addresses are not noticed.`
  return [{ kind: 'reports_silent', message }]
}

const nameSource = (source: HeardSource['source']): string =>
  source === 'mail' ? 'the bounce listener' : `the webhooks of ${source}`

/** By the counts of the whole service; suppressing stops by those of each app, and of each destination. */
export function judgeGone({ lately: counts, seesAll }: Pick<Situation, 'lately' | 'seesAll'>): Condition[] {
  const { delivered, failed, gone } = counts
  const ended = delivered + sumCounts(failed)
  if (!seesAll || !isMassBounce({ gone, ended })) return []
  const message = `${formatCount(gone)} of ${formatCount(Math.max(gone, ended))} emails in the last ${latelyMinutes} minutes were for mailboxes that do not exist, as mail servers say. So many at once usually mean a fault of a relay or a mailbox provider. An app with that many suppresses nobody else until it is over. Check the replies; if they were wrong, clear the suppressions of that time.`
  return [{ kind: 'addresses_gone', message }]
}
