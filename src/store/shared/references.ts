/** Makes and checks references of emails, by the keyed hash of the database. */
import { namedEmail, type Reference, referenceMacLength } from '../../domain/delivery/reference.ts'
import { digitsOfBytes, type EmailId } from '../../domain/id.ts'
import type { KeyedHash } from '../crypto/key-ring.ts'

export function makeReference(keyedHash: KeyedHash, id: EmailId): Reference {
  const bytes = Buffer.from(keyedHash('reference', id), 'base64url')
  return `${id}.${digitsOfBytes(bytes, 0, referenceMacLength)}` as Reference
}

/** The email; null if the reference was not made here. It says nothing of whether there is a record. */
export function openReference(keyedHash: KeyedHash, reference: Reference): EmailId | null {
  const id = namedEmail(reference)
  return makeReference(keyedHash, id) === reference ? id : null
}
