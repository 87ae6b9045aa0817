/**
 * Links that follow the service's rules (spec 2.3 rule 2): one query parameter, `token`. The other
 * parameters of a library's link travel inside the token, `<token>~<base64url of the others>`; the
 * landing page splits it again.
 */
import { PosternError } from './postern-error.ts'

const pageShape = /^([a-z][a-z\d+.-]*:[^?#]+)(#.*)?$/is

/** @throws {PosternError} `invalid_config`, naming the option, if it is not a page */
export function checkPage(option: string, page: string): void {
  if (pageShape.test(page)) return
  const message = `${option} must be an absolute address without a query: the token is added.`
  throw new PosternError('invalid_config', message)
}

/** Calls `checkPage` for each page given. */
export function checkPages(option: string, pages: { readonly [name: string]: string | undefined }): void {
  for (const [name, page] of Object.entries(pages)) if (page !== undefined) checkPage(`${option}.${name}`, page)
}

/** The parameters except `token`, unchanged. */
export const otherParameters = (query: string): string =>
  query
    .split('&')
    .filter((parameter) => parameter !== '' && !parameter.startsWith('token='))
    .join('&')

/** The address of a page, with the token as its only parameter. */
export function linkTo(page: string, token: string): string {
  const [, address = '', fragment = ''] = pageShape.exec(page) ?? []
  return `${address}?token=${encodeURIComponent(token)}${fragment}`
}

/** A token that carries parameters: `rest` is a query string without its question mark. */
export function joinToken(token: string, rest: string): string {
  return rest === '' && !token.includes('~') ? token : `${token}~${toBase64Url(rest)}`
}

/** Reverses `joinToken`; null if the token is damaged. */
export function splitToken(joined: string): { token: string; rest: string } | null {
  const at = joined.lastIndexOf('~')
  if (at < 0) return { token: joined, rest: '' }
  const rest = fromBase64Url(joined.slice(at + 1))
  return rest !== null && /^[!-~]*$/.test(rest) ? { token: joined.slice(0, at), rest } : null
}

function toBase64Url(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** Decodes base64url text; null if malformed. */
export function fromBase64Url(text: string): string | null {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))
  } catch {
    return null
  }
}
