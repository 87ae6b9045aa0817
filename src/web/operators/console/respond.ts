/**
 * The headers of the console's answers. Nothing is loaded from elsewhere, and no script but the console's own
 * runs.
 */

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Html } from '../../../templates/html.ts'

const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types postern',
].join('; ')

/** For an email in a frame: it has styles and images, and runs nothing. */
const framePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"

/**
 * The referrer policy is `same-origin`: under `no-referrer` browsers send `Origin: null` with our own forms.
 */
function harden(reply: FastifyReply, policy: string): FastifyReply {
  return reply
    .header('content-security-policy', policy)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'same-origin')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin')
    .header('cache-control', 'no-store')
}

export function sendPage(reply: FastifyReply, status: number, page: Html): FastifyReply {
  return harden(reply, pagePolicy)
    .header('x-frame-options', 'DENY')
    .code(status)
    .header('content-type', 'text/html; charset=utf-8')
    .send(page.text)
}

/** @param email the HTML of an email, whose links open in a new tab */
export const sendFrame = (reply: FastifyReply, email: string): FastifyReply =>
  harden(reply, framePolicy)
    .header('content-type', 'text/html; charset=utf-8')
    .send(email.replace('<head>', '<head><base target="_blank">'))

/** A file that the browser saves, and does not show. */
export const sendFile = (
  reply: FastifyReply,
  { file, type, text }: { readonly file: string; readonly type: string; readonly text: string | Buffer },
): FastifyReply =>
  harden(reply, "default-src 'none'")
    .header('content-type', type)
    .header('content-disposition', `attachment; filename="${file}"`)
    .send(text)

const types = { css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' } as const
type Extension = keyof typeof types

/** A file for browsers, whose address changes with its content. */
function asset(name: string, extension: Extension) {
  const content = readFileSync(new URL(`./browser/${name}.${extension}`, import.meta.url))
  const version = hash('sha256', content, 'hex').slice(0, 12)
  return { content, path: `/assets/${name}-${version}.${extension}`, type: types[extension] }
}

export const assets = {
  style: asset('console', 'css'),
  script: asset('console', 'js'),
  icon: asset('icon', 'svg'),
}

export function addAssets(pages: FastifyInstance): void {
  for (const { content, path, type } of Object.values(assets)) {
    pages.get(path, (_request, reply) =>
      harden(reply, "default-src 'none'")
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('content-type', `${type}; charset=utf-8`)
        .send(content),
    )
  }
}
