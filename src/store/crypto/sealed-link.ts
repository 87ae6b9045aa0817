/**
 * The sealed part of a hosted link: authenticated encryption of its destination, its expiry, and the type
 * and language of its email, bound to one app and to its domain, so that nobody can forge a link and nothing
 * is stored. Each link has a key of its own, derived from the ring's key, the app, the domain and a new salt.
 *
 *   text   = base64url(salt [12] sealed)
 *   sealed = as `seal` makes it, of: type expiry ["," [language] ["," purpose]] "." destination
 *   type   = its place in `emailTypes`; expiry = seconds since 1970 (base 36); language = its tag
 *   purpose = its place in `purposes`
 *
 * 100 characters of destination make some 210 of text.
 */
import { randomBytes } from 'node:crypto'
import type { LinkOwner, LinkTarget } from '../../domain/app/hosted-link.ts'
import { purposes } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { type KeyRing, seal, unseal } from './key-ring.ts'

const saltBytes = 12

function toContext({ appId, domain }: LinkOwner, salt: Uint8Array): string {
  const owner = domain === null ? appId : `${appId} ${domain}`
  return `hosted link ${owner} ${Buffer.from(salt.buffer, salt.byteOffset, salt.byteLength).toString('base64url')}`
}

/** The expiry is rounded down to the second, so that a page never outlives its link. */
export function sealLink(ring: KeyRing, owner: LinkOwner, target: LinkTarget): string {
  const salt = randomBytes(saltBytes)
  const { destination, expiresAt, locale, purpose, type } = target
  const expiry = Math.floor(expiresAt / 1000).toString(36)
  const about = [locale ?? '', ...(purpose === undefined ? [] : [purposes.indexOf(purpose)])]
  const more = about.join('') === '' ? '' : `,${about.join(',')}`
  const text = `${emailTypes.indexOf(type)}${expiry}${more}.${destination}`
  return Buffer.concat([salt, seal(ring, toContext(owner, salt), text)]).toString('base64url')
}

/** The target that was sealed for this owner; null for anything else. */
export function openLink(ring: KeyRing, owner: LinkOwner, sealed: string): LinkTarget | null {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.toString('base64url') !== sealed) return null // only one text per link: no spare bits, no other alphabet
  try {
    const text = unseal(ring, toContext(owner, bytes.subarray(0, saltBytes)), bytes.subarray(saltBytes))
    const dot = text.indexOf('.')
    const type = emailTypes[Number(text.slice(0, 1))]
    if (type === undefined) return null
    const [expiry = '', locale = '', place = ''] = text.slice(1, dot).split(',')
    const expiresAt = Number.parseInt(expiry, 36) * 1000
    const purpose = place === '' ? undefined : purposes[Number(place)]
    const more = { ...(locale !== '' && { locale }), ...(purpose !== undefined && { purpose }) }
    return { type, destination: text.slice(dot + 1), expiresAt, ...more }
  } catch {
    return null
  }
}
