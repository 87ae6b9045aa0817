/**
 * The emails that a process queued last for a recipient and a kind of link, by which the next one finds those
 * that it supersedes. In memory: a restart forgets them, and they are then sent as well. An index on the
 * queue would cost more than a page for each email.
 */
import type { EmailId } from '../../domain/id.ts'
import { LruMap } from '../../domain/lru-map.ts'
import type { NewEmail } from '../store.ts'
import type { RecipientNames } from './bucket-names.ts'

/** Twice as many may be held: 5 MB, or 18 with the longest links and the most emails of each. */
const namesKept = 10_000
/** Emails of one name, most of which have long been sent. */
const emailsMax = 8
/** Characters: it bounds the memory. A link this long usually has a secret in its path. */
const keyMax = 256

export class RecentEmails {
  readonly #emails = new LruMap<string, readonly EmailId[]>(namesKept)

  /** The emails that a new one of this name may supersede. */
  find(name: string | null): readonly EmailId[] {
    return name === null ? [] : (this.#emails.get(name) ?? [])
  }

  add(name: string | null, id: EmailId): void {
    if (name !== null) this.#emails.set(name, [...this.find(name), id].slice(-emailsMax))
  }
}

/**
 * The same for emails that supersede each other; null for one that supersedes none. It is never stored, so it
 * needs no hash.
 */
export const nameSuperseding = (
  { address }: Pick<RecipientNames, 'address'>,
  { supersedeKey }: Pick<NewEmail, 'supersedeKey'>,
): string | null => (supersedeKey === null || supersedeKey.length > keyMax ? null : `${address} ${supersedeKey}`)
