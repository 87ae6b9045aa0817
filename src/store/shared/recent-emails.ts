/**
 * The newest email that a process queued for a recipient and a kind of link, by which the next one finds the
 * email that it supersedes. In memory: a restart forgets it, and the older email is then sent as well. An
 * index on the queue would cost more than a page for each email.
 */
import type { AppId, EmailId } from '../../domain/id.ts'
import { LruMap } from '../../domain/lru-map.ts'
import type { KeyedHash } from '../crypto/key-ring.ts'
import type { NewEmail } from '../store.ts'

export type RecentEmails = LruMap<string, EmailId>

/** Some 10 MB. */
const recentMax = 50_000

export const newRecentEmails = (): RecentEmails => new LruMap(recentMax)

/** The same for emails that supersede each other; null for one that supersedes none. */
export const nameSuperseding = (
  keyedHash: KeyedHash,
  appId: AppId,
  recipient: string,
  { supersedeKey }: Pick<NewEmail, 'supersedeKey'>,
): string | null => (supersedeKey === null ? null : keyedHash('supersede', appId, recipient, supersedeKey))
