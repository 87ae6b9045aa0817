/**
 * The hosted page: the app's name, a button, and where the button leads. It has no script, one inline
 * style that the policy allows by its hash, and loads nothing but the app's logo. For an app scheme
 * the button is a plain link; for https it is a form, so that link scanners open nothing.
 */
import { createHash } from 'node:crypto'
import type { AppSettings } from '../../domain/app/settings.ts'
import { type AuthLink, isOriginal } from '../../domain/request/auth-link.ts'
import type { Purpose } from '../../domain/request/email-content.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import { defaultAccent, textOn } from '../colour.ts'
import { type Html, html, raw } from '../html.ts'
import type { Language } from '../locales/locales.ts'
import type { Strings } from '../locales/strings.ts'

const writeStyle = (
  accent: string,
  wordBreak: Strings['wordBreak'],
): string => `:root{color-scheme:light dark;--ink:#1b1f24;--soft:#4b5563;--back:#f3f4f6;--card:#fff;--line:#e2e5ea}
@media (prefers-color-scheme:dark){:root{--ink:#f1f3f5;--soft:#b4bcc8;--back:#111317;--card:#1c1f24;--line:#343a43}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}
main{box-sizing:border-box;max-width:480px;min-height:100vh;margin:0 auto;padding:32px 16px 16vh;display:grid;grid-template-columns:minmax(0,1fr);align-content:center;overflow-wrap:anywhere;word-break:${wordBreak}}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:32px 24px}
img{display:block;max-height:40px;max-width:200px;margin:0 0 24px}
@media (forced-colors:active){img{forced-color-adjust:none;background:#fff}}
@media (prefers-color-scheme:dark){img{padding:6px 10px;border-radius:8px;background:#fff}}
.name{font-weight:600;margin:0 0 24px}
h1{font-size:24px;line-height:1.3;margin:0 0 16px}
p{margin:0 0 16px}
.button{display:block;width:100%;margin:24px 0;padding:14px 20px;border:1px solid #8a929e;border-radius:8px;background:${accent};color:${textOn(accent)};font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.button:focus-visible,a:focus-visible{outline:3px solid #60a5fa;outline-offset:3px}
.soft{color:var(--soft);font-size:14px}
.destination{direction:ltr;unicode-bidi:isolate;overflow-wrap:anywhere}
a{color:inherit}
section>:last-child{margin-bottom:0}`

/** A page and its Content-Security-Policy. */
export type HostedPage = { readonly body: string; readonly policy: string }

type Needs = { readonly image?: string; readonly formTo?: string }

const writePolicy = (style: string, needs: Needs): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    ...(needs.image === undefined ? [] : [`img-src ${needs.image}`]),
    // Browsers apply this to all redirects behind the form. An auth server leads on to places of its own.
    ...(needs.formTo === 'anywhere'
      ? []
      : [`form-action ${needs.formTo === undefined ? "'none'" : `'self' ${needs.formTo}`}`]),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

type PageContent = Language & { title: string; body: Html; accent?: string; needs?: Needs }

function page({ strings, language, title, body, accent = defaultAccent, needs = {} }: PageContent): HostedPage {
  const style = writeStyle(accent, strings.wordBreak)
  const text = html`<!doctype html>
<html lang="${language}" dir="${strings.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${raw(style)}</style>
</head>
<body><main><section>
${body}
</section></main></body>
</html>
`.text
  return { body: text, policy: writePolicy(style, needs) }
}

export type Opening = Language & {
  readonly app: AppSettings
  /** The type of the email that carried the link. */
  readonly type: EmailType
  readonly purpose?: Purpose | undefined
  readonly destination: AuthLink
}

export function openPage(opening: Opening): HostedPage {
  const { app, destination, strings, purpose, type } = opening
  const destinationName = nameDestination(destination)
  const words = strings.hostedPage
  const { logoUrl, accentColour } = app.branding
  const label = words.open(app.name)
  const heading = words.heading(purpose ?? type, app.name)
  const toApp = destination.kind === 'app'
  const leadsTo = toApp ? words.opensApp(app.name) : words.leadsTo
  const button = toApp
    ? html`<a class="button" href="${destination.href}">${label}</a>`
    : html`<form method="post"><button class="button" type="submit">${label}</button></form>`
  const body = html`${appName(app, strings)}
<h1>${heading}</h1>
<p>${words.intro}</p>
${button}
<p class="soft">${addSpace(leadsTo)}<bdi class="destination">${destinationName}</bdi></p>
${toApp ? appMissing(app, strings) : html``}`
  const needs: Needs = {
    ...(logoUrl === undefined ? {} : { image: toSource(logoUrl) }),
    ...(toApp ? {} : { formTo: isOriginal(destination) ? 'anywhere' : destinationName }),
  }
  return page({
    ...opening,
    title: heading,
    body,
    needs,
    ...(accentColour && { accent: accentColour }),
  })
}

function nameDestination({ kind, scheme, authority }: AuthLink): string {
  if (kind === 'web') return `${scheme}://${authority}`
  return authority ? `${scheme}://${authority}` : `${scheme}:`
}

/** The URL of one image as a source of the policy: `;` and `,` would end the source. */
const toSource = (url: string): string =>
  url
    .replace(/[?#].*$/, '')
    .replaceAll(';', '%3B')
    .replaceAll(',', '%2C')

function appName(app: AppSettings, { isolate }: Strings): Html {
  const { logoUrl } = app.branding
  const name = isolate(app.name)
  if (logoUrl === undefined) return html`<p class="name">${name}</p>`
  return html`<img src="${logoUrl}" alt="${name}" height="40" referrerpolicy="no-referrer">`
}

function appMissing(app: AppSettings, { hostedPage: words }: Strings): Html {
  const { fallbackUrl } = app
  const fallback =
    fallbackUrl === undefined ? html`` : html`<a href="${fallbackUrl}" rel="noreferrer nofollow">${words.fallback}</a>`
  return html`<p class="soft">${addSpace(words.appMissing(app.name))}${fallback}</p>`
}

/** Punctuation as wide as a Chinese character has its space inside. */
const addSpace = (text: string): string => (/[\u3000-\u303f\uff00-\uff60]$/.test(text) ? text : `${text} `)

/**
 * For an expired link: when it expired, and where to ask for a new email.
 *
 * @param expiredAt milliseconds since 1970
 */
export function expiredPage(language: Language, app: AppSettings, expiredAt: number): HostedPage {
  const words = language.strings.hostedPage
  const { branding, newEmailUrl = app.fallbackUrl } = app
  const back =
    newEmailUrl === undefined
      ? html``
      : html`<a class="button" href="${newEmailUrl}" rel="noreferrer nofollow">${words.open(app.name)}</a>`
  const body = html`<p class="name">${language.strings.isolate(app.name)}</p>
<h1>${words.expiredHeading}</h1>
<p class="soft"><time datetime="${new Date(expiredAt).toISOString()}">${language.strings.dateTime(expiredAt)}</time></p>
<p>${words.expiredAdvice(app.name)}</p>
${back}`
  return page({
    ...language,
    title: words.expiredHeading,
    body,
    ...(branding.accentColour && { accent: branding.accentColour }),
  })
}

/** For everything that is not a valid link: the same page for every reason. */
export const unknownPage = (language: Language): HostedPage => {
  const { unknownHeading, unknownAdvice } = language.strings.hostedPage
  return plainPage(language, unknownHeading, unknownAdvice)
}

/** For a link that cannot be checked while the store does not answer. */
export const unavailablePage = (language: Language): HostedPage => {
  const { unavailableHeading, unavailableAdvice } = language.strings.hostedPage
  return plainPage(language, unavailableHeading, unavailableAdvice)
}

const plainPage = (language: Language, title: string, advice: string): HostedPage =>
  page({
    ...language,
    title,
    body: html`<h1>${title}</h1>
<p>${advice}</p>`,
  })
