/** Captured messages, read back as a mail client would read them. */
import PostalMime from 'postal-mime'
import type { Captured } from '../../delivery/relay/capture-relay.ts'

export type InboxEmail = {
  readonly id: string
  readonly app: string
  readonly type: string
  readonly to: string
  readonly from: string
  readonly subject: string
  readonly url: string
  readonly expiresAt: number
  readonly at: number
  readonly html: string
  readonly text: string
  readonly headers: string
  readonly raw: string
}

const read = new WeakMap<Captured, Promise<InboxEmail>>()

/** Parsed once, however often the list is shown. */
export function readCaptured(captured: Captured): Promise<InboxEmail> {
  const known = read.get(captured) ?? parse(captured)
  read.set(captured, known)
  return known
}

async function parse(captured: Captured): Promise<InboxEmail> {
  const message = await PostalMime.parse(captured.raw)
  const raw = captured.raw.toString('utf8')
  return {
    ...captured,
    from: message.from?.address === undefined ? '' : `${message.from.name} <${message.from.address}>`,
    subject: message.subject ?? '',
    html: message.html ?? '',
    text: message.text ?? '',
    headers: raw.slice(0, raw.indexOf('\r\n\r\n')),
    raw,
  }
}

/** What `GET /api/inbox/latest` and `/api/inbox/:id` answer: for tests of apps that send through this server. */
export const presentEmail = (email: InboxEmail) => ({
  id: email.id,
  app: email.app,
  type: email.type,
  to: email.to,
  from: email.from,
  subject: email.subject,
  url: email.url,
  expiresAt: new Date(email.expiresAt).toISOString(),
  receivedAt: new Date(email.at).toISOString(),
  html: email.html,
  text: email.text,
})
