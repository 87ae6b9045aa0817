/**
 * The page between an email and a link that works only once. Opening it changes nothing; its button,
 * a posted form, leads on. Link scanners press no buttons, so they use up no token. No script, nothing
 * loaded. The next page receives this page's origin, never its address: with `no-referrer` the form's
 * Origin would be `null`, which frameworks refuse.
 */

export type ConfirmTexts = {
  readonly title: string
  readonly button: string
}

/**
 * Answers GET and HEAD with the page, POST with a redirect.
 * @param goOn the target of the redirect, relative or absolute; null if the link is damaged
 */
export function answerConfirm(request: Request, texts: ConfirmTexts, goOn: string | null): Response {
  if (!['GET', 'HEAD', 'POST'].includes(request.method)) {
    return new Response(null, { status: 405, headers: { allow: 'GET, HEAD, POST' } })
  }
  if (goOn === null) {
    const text = 'This link is incomplete. Open it again from the email, or ask for a new one.'
    return page(400, { title: 'Incomplete link', body: `<p>${text}</p>` })
  }
  if (request.method === 'POST')
    return new Response(null, { status: 303, headers: { ...headers, location: goOn } })
  const { title, button } = texts
  return page(200, { title, body: `<form method="post"><button>${escapeHtml(button)}</button></form>` })
}

// No `form-action`: browsers apply it to redirects too, and those may lead to any origin.
const headers = {
  'cache-control': 'no-store',
  'referrer-policy': 'strict-origin',
  'x-robots-tag': 'noindex',
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
}

const style = `:root{color-scheme:light dark}
body{margin:0;padding:32px 16px;font:16px/1.5 system-ui,sans-serif;background:light-dark(#f3f4f6,#111317);color:light-dark(#1b1f24,#f1f3f5)}
main{max-width:432px;margin:0 auto;padding:32px 24px;border-radius:12px;background:light-dark(#fff,#1c1f24);border:1px solid light-dark(#e2e5ea,#343a43)}
h1{margin:0 0 24px;font-size:24px;line-height:1.3;overflow-wrap:anywhere}
p{margin:0}
button{width:100%;padding:14px 20px;border:0;border-radius:8px;font:inherit;font-weight:600;background:light-dark(#1b1f24,#f1f3f5);color:light-dark(#fff,#1b1f24);cursor:pointer}
button:focus-visible{outline:3px solid #60a5fa;outline-offset:3px}`

function page(status: number, { title, body }: { title: string; body: string }): Response {
  const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body><main><h1>${escapeHtml(title)}</h1>${body}</main></body>
</html>
`
  return new Response(text, { status, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } })
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
