/**
 * The sealed part of a list's cursor. It tells nothing: where a page ends may be the email of another app.
 */
import { type KeyRing, seal, unseal } from './key-ring.ts'

const toContext = (list: string): string => `cursor ${list}`

export const newCursors = (ring: KeyRing) => ({
  seal: (list: string, id: string): string => seal(ring, toContext(list), id).toString('base64url'),
  open: (list: string, sealed: string): string | null => {
    try {
      return unseal(ring, toContext(list), Buffer.from(sealed, 'base64url'))
    } catch {
      return null // altered, of another list, or its key has left the ring
    }
  },
})
