/** Checks that reports about emails can reach this service: by mail to bounce addresses, and by webhooks. */
import type { App } from '../../domain/app/app.ts'
import { counted } from '../../domain/counts.ts'
import { isBounceBase } from '../../domain/delivery/reference.ts'
import { describeDuration } from '../../domain/duration.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { HeardSource } from '../../store/report-store.ts'
import type { Finding } from '../../store/store.ts'
import type { Management } from '../context.ts'

/** Apps whose own bounce address gives each of their emails one. */
export const findBounceBases = (apps: readonly App[]): App[] =>
  apps.filter(({ settings: { envelopeFrom } }) => envelopeFrom !== undefined && isBounceBase(envelopeFrom))

export function checkBounces(
  { bounceAddress, bounceListener }: Pick<Management, 'bounceAddress' | 'bounceListener'>,
  apps: readonly App[],
): Finding {
  const check = 'bounces'
  const own = findBounceBases(apps).length
  if (bounceListener !== null && bounceAddress === null && own === 0)
    return {
      check,
      ok: false,
      detail: `the bounce listener is on ${bounceListener}, but no email has a bounce address to which a report could come: set POSTERN_BOUNCE_ADDRESS, or give an app one with a + in front of the @ (postern app update APP --envelope-from bounces+@bounce.example.com)`,
    }
  const listener =
    bounceListener === null
      ? 'no bounce listener in this process (POSTERN_BOUNCE_LISTEN)'
      : `the bounce listener is on ${bounceListener}`
  return { check, ok: true, detail: `${describeAddress(bounceAddress, own)}; ${listener}` }
}

/** The reports listener, and when each source of reports was last heard. */
export function checkReports(
  { reportsListener, reportProviders }: Pick<Management, 'reportsListener' | 'reportProviders'>,
  sources: readonly HeardSource[],
  nowMs: number,
): Finding {
  const listener =
    reportsListener === null
      ? 'this process has no reports listener (POSTERN_REPORTS_LISTEN)'
      : `the reports listener is on ${reportsListener}, for ${reportProviders.join(', ')}`
  const heard = sources.map(({ heardAt, source }) => `${source} ${describeDuration(nowMs - heardAt)} ago`)
  return {
    check: 'reports',
    ok: true,
    detail: `${listener}; last reports: ${heard.join(', ') || 'none yet'}`,
  }
}

function describeAddress(bounceAddress: EmailAddress | null, own: number): string {
  const apps = counted(own, 'app has a bounce address of its own', 'apps have bounce addresses of their own')
  if (bounceAddress !== null) return `${bounceAddress} is the bounce address${own === 0 ? '' : `, and ${apps}`}`
  return own === 0 ? 'no bounce address (POSTERN_BOUNCE_ADDRESS), so bounces go to the senders' : apps
}
