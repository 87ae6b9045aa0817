/**
 * The names of rate-limit buckets. Recipients are named by keyed hashes. In PostgreSQL, a mailbox's bucket
 * and those of its addresses are neighbours in their table, and so are all keys' buckets, because the cost of
 * a commit is the number of different pages that it touches. SQLite makes numbers of these names
 * (`buckets.ts`).
 */
import { isTestSide } from '../../domain/app/test-side.ts'
import type { AppId } from '../../domain/id.ts'
import { type EmailAddress, foldMailbox, limitAddress } from '../../domain/request/email-address.ts'
import type { KeyedHash } from '../crypto/key-ring.ts'
import type { Caller } from '../store.ts'

/** The bucket of a key, or of the test emails of an app. These ids are not secret. */
export const callerBucket = ({ keyId, appId }: Caller): string => keyId ?? appId

/** `recipient` identifies the address in every app; the buckets `mailbox` and `address` belong to one app. */
export type RecipientNames = {
  readonly recipient: string
  readonly mailbox: string
  readonly address: string
}

/** Characters of base64url: 66 bits, which is enough among the addresses of one mailbox. */
const suffixLength = 11

export function nameRecipientBuckets(keyedHash: KeyedHash, appId: AppId, to: EmailAddress): RecipientNames {
  const recipient = nameRecipient(keyedHash, to)
  // The tags of test recipients tell tests apart.
  const mailbox = keyedHash('mailbox', appId, isTestSide(appId) ? limitAddress(to) : foldMailbox(to))
  return { recipient, mailbox, address: mailbox + recipient.slice(0, suffixLength) }
}

/** The name of a recipient in `queue` and `history`. */
export const nameRecipient = (keyedHash: KeyedHash, to: EmailAddress): string =>
  keyedHash('recipient', limitAddress(to))
