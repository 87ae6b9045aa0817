/** The part of a store that keeps the emails of test keys. The rules of `store.ts` hold. */
import type { AppId, EmailId } from '../domain/id.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'

export type StoredInboxEmail = {
  readonly id: EmailId
  /** It grows with each email that is kept. */
  readonly seq: number
  /** When it was kept, in milliseconds since 1970. */
  readonly at: number
  /** The email, sealed by the key ring, as base64url. */
  readonly sealed: string
}

export type InboxQuery = {
  readonly app: AppId
  readonly type?: EmailType
  /** The name of the recipient (`nameRecipient`). */
  readonly recipient?: string
  /** Only emails with a larger `seq`. */
  readonly after?: number
  /** Only emails kept at this time or later. */
  readonly since?: number
  readonly order: 'oldest' | 'newest'
  readonly limit: number
}

export interface InboxStore {
  /**
   * Keeps an email that is in the queue, once, for `inboxMs`; of each app the newest `inboxMax`.
   */
  keepInboxEmail(email: Pick<StoredInboxEmail, 'id' | 'sealed'>): Promise<void>
  listInbox(query: InboxQuery): Promise<StoredInboxEmail[]>
}
