/**
 * How the rows that count against limits are named. Recipients by keyed hashes; a mailbox's bucket
 * and those of its addresses stand side by side, and so do those of all keys, since what a
 * commit costs is the number of different pages it touches.
 */

import type { AppId, KeyId } from '../../domain/id.ts'
import { type EmailAddress, foldMailbox, limitAddress } from '../../domain/request/email-address.ts'
import type { KeyedHash } from '../crypto/key-ring.ts'

/** Key ids are no secret. */
export const keyBucket = (keyId: KeyId): string => keyId

/** `recipient` names the address alone; the buckets `mailbox` and `address` are its app's. */
export type RecipientNames = {
  readonly recipient: string
  readonly mailbox: string
  readonly address: string
}

/** Of base64url: 66 bits, which is plenty among the addresses of one mailbox. */
const suffixLength = 11

export function recipientNames(keyedHash: KeyedHash, appId: AppId, to: EmailAddress): RecipientNames {
  const recipient = keyedHash('recipient', limitAddress(to))
  const mailbox = keyedHash('mailbox', appId, foldMailbox(to))
  return { recipient, mailbox, address: mailbox + recipient.slice(0, suffixLength) }
}
