/**
 * The page between an email and a link that works only once. Opening it changes nothing; its button,
 * a posted form, leads on. Link scanners press no buttons, so they use up no token. No script, nothing
 * loaded. The next page receives this page's origin, never its address: with `no-referrer` the form's
 * Origin would be `null`, which frameworks refuse.
 */

import { choosePageLanguage, type PageLanguage, wordsOf } from './page-language.ts'

/** A page that asks for a press of its button. */
export type ConfirmPage = {
  readonly language: PageLanguage
  readonly title: string
  /** The app's name, above a title that does not have it. */
  readonly app?: string
  readonly button: string
  /** The target of the button, relative or absolute. */
  readonly goOn: string
}

/**
 * Answers GET and HEAD with the page, POST with a redirect.
 * @param asked null if the link is damaged
 */
export function answerConfirm(request: Request, asked: ConfirmPage | null): Response {
  if (!['GET', 'HEAD', 'POST'].includes(request.method)) {
    return new Response(null, { status: 405, headers: { allow: 'GET, HEAD, POST' } })
  }
  if (asked === null) {
    const language = choosePageLanguage(request.headers.get('accept-language')) ?? 'en'
    const { damaged, damagedAdvice } = wordsOf(language)
    return page(400, { language, title: damaged, body: `<p>${escapeHtml(damagedAdvice)}</p>` })
  }
  const { app = '', button, goOn, language, title } = asked
  if (request.method === 'POST') return new Response(null, { status: 303, headers: { ...headers, location: goOn } })
  const body = `<form method="post"><button>${escapeHtml(button)}</button></form>`
  return page(200, { language, title, app, body })
}

/** The name by which the browser knows the app: that of its address, also behind a reverse proxy. */
export function hostOf(request: Request): string {
  const forwarded = request.headers.get('x-forwarded-host')?.split(',')[0]?.trim()
  return forwarded || request.headers.get('host') || new URL(request.url).host
}

/** A name in a text of another direction keeps its own (Unicode's FSI and PDI). */
export const isolate = (name: string): string => `\u2068${name}\u2069`

// No `form-action`: browsers apply it to redirects too, and those may lead to any origin.
const headers = {
  'cache-control': 'no-store',
  'referrer-policy': 'strict-origin',
  'x-robots-tag': 'noindex',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
}

const style = `:root{color-scheme:light dark}
body{margin:0;padding:32px 16px;font:16px/1.5 system-ui,sans-serif;background:light-dark(#f3f4f6,#111317);color:light-dark(#1b1f24,#f1f3f5)}
main{max-width:432px;margin:0 auto;padding:32px 24px;border-radius:12px;background:light-dark(#fff,#1c1f24);border:1px solid light-dark(#e2e5ea,#343a43)}
h1{margin:0 0 24px;font-size:24px;line-height:1.3;overflow-wrap:anywhere}
p{margin:0}
.app{margin:0 0 8px;font-weight:600}
button{width:100%;padding:14px 20px;border:0;border-radius:8px;font:inherit;font-weight:600;background:light-dark(#1b1f24,#f1f3f5);color:light-dark(#fff,#1b1f24);cursor:pointer}
button:focus-visible{outline:3px solid #60a5fa;outline-offset:3px}`

type Page = Pick<ConfirmPage, 'app' | 'language' | 'title'> & { readonly body: string }

function page(status: number, { app = '', language, title, body }: Page): Response {
  const name = app === '' ? '' : `<p class="app">${escapeHtml(isolate(app))}</p>`
  const text = `<!doctype html>
<html lang="${language}" dir="${wordsOf(language).direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body><main>${name}<h1>${escapeHtml(title)}</h1>${body}</main></body>
</html>
`
  return new Response(text, { status, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } })
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
