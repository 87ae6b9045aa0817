/**
 * Links within the service's rules (spec 2.3 rule 2): one query parameter, `token`. What else a
 * library's link carries travels inside the token: `<token>~<base64url of the other parameters>`,
 * which the landing page takes apart again.
 */
import { PosternError } from './postern-error.ts'

const pageShape = /^([a-z][a-z\d+.-]*:[^?#]+)(#.*)?$/is

/** @throws {PosternError} `invalid_config`, which names the option, where it is no page */
export function checkPage(option: string, page: string): void {
  if (pageShape.test(page)) return
  const message = `${option} must be an absolute address without a query: the token is added.`
  throw new PosternError('invalid_config', message)
}

/** As `checkPage`, for each page that is named. */
export function checkPages(option: string, pages: { readonly [name: string]: string | undefined }): void {
  for (const [name, page] of Object.entries(pages))
    if (page !== undefined) checkPage(`${option}.${name}`, page)
}

/** Parameters besides the token, as they stand. */
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

/** What `joinToken` joined; null where the token is damaged. */
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

/** Text out of base64url; null where it is none. */
export function fromBase64Url(text: string): string | null {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(
      Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)),
    )
  } catch {
    return null
  }
}
