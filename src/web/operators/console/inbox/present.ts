/** Captured emails as JSON, for the inbox's API and for tests of apps that send through dev mode. */
import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'

export const formatSender = ({ from }: Pick<CapturedEmail, 'from'>): string =>
  `${from.name} <${from.address}>`

export const presentSummary = ({ id, app, type, to, subject, receivedAt }: CapturedEmail) => ({
  id,
  app,
  type,
  to,
  subject,
  receivedAt: new Date(receivedAt).toISOString(),
})

/** The answer of `GET /api/inbox/latest` and `/api/inbox/:id`. */
export const presentEmail = (email: CapturedEmail) => ({
  ...presentSummary(email),
  from: formatSender(email),
  url: email.url,
  expiresAt: new Date(email.expiresAt).toISOString(),
  language: email.language,
  html: email.html,
  text: email.text,
})
