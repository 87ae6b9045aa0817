/** Captured emails as JSON, for the inbox's API and for tests of apps that send through dev mode. */
import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'

export const formatSender = ({ from }: Pick<CapturedEmail, 'from'>): string => `${from.name} <${from.address}>`

export const presentSummary = ({ id, seq, app, slug, type, to, subject, receivedAt }: CapturedEmail) => ({
  id,
  seq,
  app,
  slug,
  type,
  to,
  subject,
  receivedAt: new Date(receivedAt).toISOString(),
})

/** The answer of `GET /api/inbox/latest`, `/api/inbox/wait` and `/api/inbox/:id`. */
export const presentEmail = (email: CapturedEmail) => ({
  ...presentSummary(email),
  from: formatSender(email),
  url: email.url,
  code: email.code,
  expiresAt: new Date(email.expiresAt).toISOString(),
  language: email.language,
  html: email.html,
  text: email.text,
})

/** Whether a part of the recipient, subject, app or type is the text. */
export const matchesText = ({ to, subject, app, type }: CapturedEmail, text: string): boolean =>
  [to, subject, app, type].some((part) => part.toLowerCase().includes(text.trim().toLowerCase()))
