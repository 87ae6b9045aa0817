/** The sealed content of an email: recipient, names and link. It is bound to the email's id. */
import type { EmailId } from '../../domain/id.ts'
import type { EmailContent } from '../../domain/request/email-content.ts'
import { KeyMissing, type KeyRing, seal, unseal } from './key-ring.ts'

const toContext = (id: EmailId): string => `email ${id}`

export const sealContent = (ring: KeyRing, id: EmailId, content: EmailContent) =>
  seal(ring, toContext(id), JSON.stringify(content))

/** `key_missing` can be opened once the ring holds its key again; `damaged` never. */
export type Opened =
  | { readonly kind: 'content'; readonly content: EmailContent }
  | { readonly kind: 'key_missing'; readonly why: string; readonly keyId: string }
  | { readonly kind: 'damaged'; readonly why: string }

export function openContent(ring: KeyRing, id: EmailId, sealed: Uint8Array): Opened {
  try {
    return { kind: 'content', content: JSON.parse(unseal(ring, toContext(id), sealed)) }
  } catch (error) {
    if (error instanceof KeyMissing) return { kind: 'key_missing', why: error.message, keyId: error.keyId }
    return { kind: 'damaged', why: 'the sealed content cannot be opened' }
  }
}
