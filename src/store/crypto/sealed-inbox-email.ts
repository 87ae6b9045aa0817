/** The emails of test keys, as they are kept: they hold links that sign in. */
import type { EmailId } from '../../domain/id.ts'
import { type KeyRing, openText, sealText } from './key-ring.ts'

const toContext = (id: EmailId): string => `inbox email ${id}`

export const sealInboxEmail = (ring: KeyRing, id: EmailId, text: string): string => sealText(ring, toContext(id), text)

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openInboxEmail = (ring: KeyRing, id: EmailId, sealed: string): string | null =>
  openText(ring, toContext(id), sealed)
