/** The lines of the log about emails that ended without an attempt, leases that were lost, and webhooks. */
import { type EndedEmail, suspectAfter } from '../domain/delivery/states.ts'
import type { LeasesTakenBack, WebhookTried } from './events.ts'
import type { Line } from './line.ts'
import { linesPerSecond } from './line-limiter.ts'

export function webhookLine({ appId, emailId, event, outcome, result, tookMs, tries }: WebhookTried): Line {
  const texts = {
    sent: 'a webhook was sent',
    failed: 'the receiver did not accept a webhook',
    given_up: 'a webhook was given up',
  }
  return {
    level: outcome === 'given_up' ? 'warn' : 'info',
    text: texts[outcome],
    fields: {
      app: appId,
      ...(emailId !== null && { email: emailId }),
      event,
      result,
      tries,
      tookMs: Math.round(tookMs),
    },
    kind: `webhook ${outcome}`,
  }
}

/** One line for each email; for many at once, one for each end and app, with a count. */
export function endedLines(ended: readonly EndedEmail[]): Line[] {
  const toFields = ({ appId, state, reason }: EndedEmail) => ({
    app: appId,
    state,
    ...(reason !== null && { reason }),
  })
  const level = ({ state }: EndedEmail) => (state === 'cancelled' || state === 'suppressed' ? 'info' : 'warn')
  if (ended.length <= linesPerSecond)
    return ended.map((email) => {
      const fields = { email: email.emailId, ...toFields(email) }
      const text = `an email ended without being sent: ${email.state}`
      return { level: level(email), text, fields, kind: `ended ${email.state}` }
    })
  const groups = Map.groupBy(ended, ({ appId, state, reason }) => `${appId} ${state} ${reason}`)
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return []
    const fields = { ...toFields(first), count: others.length + 1 }
    const text = `emails ended without being sent: ${first.state}`
    return [{ level: level(first), text, fields, kind: `ended ${first.state}` }]
  })
}

/** One line for all, and one for each suspect, so that an operator can cancel it. */
export function takenBackLines({ lost }: LeasesTakenBack): Line[] {
  const text = 'a worker died, hung, or lost its connection to the database while it held emails; they are queued again'
  const suspects = lost.filter(({ count }) => count >= suspectAfter)
  return [
    { level: 'warn', text, fields: { count: lost.length, suspects: suspects.length } },
    ...suspects.map(({ emailId, count }): Line => {
      const fields = { email: emailId, lostLeases: count }
      return { level: 'error', text: suspectText, fields }
    }),
  ]
}

const suspectText =
  'this email has lost two or more leases; it is claimed alone, after growing pauses. If it crashes its workers, cancel it with "postern email cancel EMAIL"'
