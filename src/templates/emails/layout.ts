/**
 * The layout of an email: one column of 16 px text on a card, built from presentation tables with
 * inline styles, which every mail client understands. A `<style>` block adds dark mode and small
 * screens for the clients that read it. No image but the app's logo, no tracking, no rewritten link.
 */
import type { AppSettings } from '../../domain/app/settings.ts'
import { contrast, defaultAccent, textOn } from '../colour.ts'
import { escapeHtml, type Html, html, none, raw } from '../html.ts'
import { type Letter, type LinkTexts, type Paragraph, unlinkable } from '../letter.ts'
import type { Strings } from '../locales/strings.ts'

export type Frame = {
  readonly letter: Letter
  readonly strings: Strings
  readonly app: AppSettings
  readonly language: string
  readonly texts: LinkTexts
}

const page = '#f3f4f6'
const card = '#ffffff'
const darkPage = '#111317'
const darkCard = '#1c1f24'
const box = '#f3f4f6'
const darkBox = '#2a2f37'

/** Without families of their own, Word sets Chinese, Japanese and Korean in a serif face. */
const writeFont = (size: string, { strings }: Frame): string =>
  `font:${size} -apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,${strings.fonts}Helvetica,Arial,sans-serif`

/** Mail clients do not know `start`. */
const startSide = ({ direction }: Strings): string => (direction === 'rtl' ? 'right' : 'left')

// Outlook.com sets [data-ogsc] on a page in its own dark mode.
const style = `
:root{color-scheme:light dark;supported-color-schemes:light dark}
body{margin:0;padding:0;width:100%!important}
a{text-decoration:underline}
@media (max-width:480px){.card{padding:28px 20px!important}.column{padding:12px 8px!important}.button{width:100%!important}.button a{display:block!important}}
@media (prefers-color-scheme:dark){
.page,.column{background:${darkPage}!important}.card{background:${darkCard}!important;border-color:#343a43!important}
.ink{color:#f1f3f5!important}.soft{color:#b4bcc8!important}.rule{border-color:#343a43!important}
.plate{background:#fff!important;color:#1b1f24!important;padding:6px 10px!important;border-radius:8px!important}}
@media (forced-colors:active){.plate{forced-color-adjust:none;background:#fff!important;color:#1b1f24!important}}
[data-ogsc] .plate{background:#fff!important;color:#1b1f24!important;padding:6px 10px!important;border-radius:8px!important}
[data-ogsc] .card{background:${darkCard}!important;border-color:#343a43!important}[data-ogsc] .rule{border-color:#343a43!important}
[data-ogsc] .ink{color:#f1f3f5!important}[data-ogsc] .soft{color:#b4bcc8!important}`

// Apple's mail makes links of numbers that look like telephone numbers.
const codeStyle = `
a[x-apple-data-detectors]{color:inherit!important;text-decoration:none!important}
@media (max-width:480px){.code{font-size:24px!important}}
.code span:empty{padding:0!important}
@media (prefers-color-scheme:dark){.code-box{background:${darkBox}!important}}
[data-ogsc] .code-box{background:${darkBox}!important}`

// Fills the preview that mail clients show, so that no text after the preheader appears in it.
// Short ASCII lines, so that an English email needs no quoted-printable.
const padding = raw(`\n${'&nbsp;&zwnj;'.repeat(15)}`.repeat(4))

export function renderHtml(frame: Frame): string {
  const { letter, strings } = frame
  const { direction } = strings
  const start = startSide(strings)
  const ink = `margin:0 0 16px;${writeFont('400 16px/1.55', frame)};color:#1b1f24`
  return html`<!doctype html>
<html lang="${frame.language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no,date=no,address=no,email=no,url=no">
<title>${letter.subject}</title>
<style>${raw(letter.code === null ? style : style + codeStyle)}</style>
</head>
<body class="page" bgcolor="${page}" style="margin:0;padding:0;background:${page}">
<div lang="${frame.language}" dir="${direction}" style="direction:${direction};text-align:${start}">
<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">${letter.preheader}${padding}</div>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0">
<tr><td class="column" align="center" style="padding:32px 16px;background:${page}">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:520px">
<tr><td class="card" align="${start}" style="word-break:${strings.wordBreak};overflow-wrap:anywhere;text-align:${start};padding:40px;background:${card};border:1px solid #e2e5ea;border-radius:12px">
${appName(frame)}
<h1 class="ink" style="margin:0 0 16px;${writeFont('700 24px/1.3', frame)};color:#1b1f24">${keepHyphens(letter.heading)}</h1>
${letter.paragraphs.map((paragraph) => html`<p class="ink" style="${ink}">${keepHyphens(quoteNames(paragraph, strings))}</p>\n`)}
${letter.code?.isFirst ? code(frame) : none}${button(frame)}
${letter.code?.isFirst === false ? code(frame) : none}${linkAndNotes(frame)}
</td></tr>
${footer(frame)}
</table>
</td></tr>
</table>
</div>
</body>
</html>
`.text
}

function appName(frame: Frame): Html {
  const { app, strings } = frame
  const style = `margin:0 0 24px;${writeFont('600 16px/1.4', frame)};color:#1b1f24`
  const name = strings.isolate(app.name)
  const { logoUrl } = app.branding
  if (logoUrl === undefined) return html`<p class="ink" style="${style}">${name}</p>`
  const image = 'display:block;max-height:40px;max-width:200px;border:0;background:#fff'
  // In dark mode a light plate is behind the logo: a dark one would vanish. Its text is styled as the name.
  return html`<p class="ink" style="${style}"><img class="plate" src="${logoUrl}" alt="${name}" height="40" style="${image}"></p>`
}

/** One tap selects the code where the mail client allows it. A padding separates its halves. */
function code(frame: Frame): Html {
  const { letter, strings, texts } = frame
  const intro = `margin:0 0 12px;${writeFont('400 16px/1.55', frame)};color:#1b1f24`
  // Forced colours take the background away, and draw the border.
  const boxStyle = `padding:10px 16px;background:${box};border:1px solid transparent;border-radius:8px`
  const style = `margin:0;direction:ltr;text-align:${startSide(strings)};font:600 32px/1.3 ui-monospace,'SF Mono',Menlo,Consolas,monospace;letter-spacing:.12em;color:#1b1f24;-webkit-user-select:all;user-select:all`
  return html`<p class="ink" style="${intro}">${letter.code?.intro ?? ''}</p>
<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 24px">
<tr><td class="code-box" bgcolor="${box}" style="${boxStyle}">
<p class="ink code" dir="ltr" style="${style}"><span>${texts.codeHead}</span><span style="padding-left:.4em">${texts.codeTail}</span></p>
</td></tr></table>
`
}

function button(frame: Frame): Html {
  const { app, letter, texts } = frame
  const accent = app.branding.accentColour ?? defaultAccent
  const ink = textOn(accent)
  const faint = contrast(accent, card) < 1.5 || contrast(accent, darkCard) < 1.5
  const border = faint ? '#8a929e' : accent
  // Outlook pads the cell and ignores the link's padding; every other client does the opposite.
  const cell = `border-radius:8px;background:${accent};border:1px solid ${border};mso-padding-alt:14px 28px`
  const link = `display:inline-block;padding:14px 28px;${writeFont('600 16px/1.25', frame)};color:${ink};text-decoration:none;border-radius:8px;text-align:center`
  return html`<table role="presentation" class="button" cellpadding="0" cellspacing="0" border="0" style="margin:28px 0">
<tr><td align="center" bgcolor="${accent}" style="${cell}">
<a href="${texts.url}" style="${link}">${letter.button}</a>
</td></tr></table>`
}

function linkAndNotes(frame: Frame): Html {
  const { letter, strings, texts } = frame
  const { url, host } = texts
  const { expires, notes } = letter
  const small = (colour: string) => `margin:0 0 12px;${writeFont('400 14px/1.55', frame)};color:${colour}`
  const opens = host === null ? html`` : html`<br>${strings.opens} ${host}`
  const signOff =
    letter.signOff === null
      ? none
      : html`<p class="ink" style="margin:24px 0 0;${writeFont('400 16px/1.55', frame)};color:#1b1f24">${keepHyphens(quoteNames(letter.signOff, strings))}</p>\n`
  const divider = 'margin:24px 0 20px;border:0;border-top:1px solid #e2e5ea'
  const link = `${writeFont('400 12px/1.55', frame)};color:#5b6472;word-break:break-all;overflow-wrap:anywhere`
  return html`<p class="ink" style="${small('#1b1f24')}">${keepTogether(expires, [texts.duration, texts.dateTime])}${opens}</p>
${signOff}<hr class="rule" style="${divider}">
${notes.map((note) => html`<p class="soft" style="${small('#4b5563')}">${note}</p>\n`)}
<p class="soft" style="${small('#4b5563')};margin-bottom:0">${strings.linkHint}</p>
<p class="soft" dir="ltr" style="margin:0;direction:ltr;text-align:${startSide(strings)}"><a class="soft" href="${url}" style="${link}">${url}</a></p>`
}

function footer(frame: Frame): Html {
  const { app, strings } = frame
  const { addressLine } = app.branding
  const lines = [
    ...(app.supportContact === undefined ? [] : [supportLine(app.supportContact, strings)]),
    ...(addressLine === undefined ? [] : [html`${strings.isolate(addressLine)}`]),
  ]
  if (lines.length === 0) return none
  const line = `margin:0 0 4px;${writeFont('400 13px/1.5', frame)};color:#5b6472`
  return html`<tr><td align="center" style="padding:20px 16px 0;word-break:${strings.wordBreak};overflow-wrap:anywhere">
${lines.map((text) => html`<p class="soft" style="${line}">${text}</p>\n`)}</td></tr>`
}

/** The contact as a link, because the page turns off automatic links in Apple Mail. */
function supportLine(contact: string, { isolate, support: [before, after] }: Strings): Html {
  const url = contact.startsWith('https:') ? contact : `mailto:${encodeURIComponent(contact).replace('%40', '@')}`
  return html`${before}<a class="soft" href="${url}" style="color:#5b6472">${isolate(contact)}</a>${after}`
}

/** Programs that make links take a mark of direction into them, so the contact has a line of its own. */
const plainSupport = (contact: string, { direction, support: [before, after] }: Strings): string =>
  direction === 'rtl' ? `${before.trimEnd()}\n${contact}${after}` : `${before}${contact}${after}`

/** A line does not end within "e-mail" or "e-post". */
const keepHyphens = (text: string): string => text.replace(/\b(e)-(?=\p{L})/giu, '$1-\u2060')

/** A duration and a date are not broken over two lines. */
const keepTogether = (sentence: string, parts: readonly string[]): Html =>
  raw(
    parts
      .map(escapeHtml)
      .reduce(
        (text, part) => text.replace(part, () => `<span style="white-space:nowrap">${part}</span>`),
        escapeHtml(sentence),
      ),
  )

/**
 * U+2068 and U+2069 isolate the direction of a name. `<bdi>` does so too, but Gmail, Outlook and Yahoo remove
 * it.
 */
const quoteNames = (paragraph: Paragraph, { quotes }: Strings): string =>
  paragraph
    .map((piece) => (typeof piece === 'string' ? piece : quotes.join(`\u2068${unlinkable(piece.name)}\u2069`)))
    .join('')

export function renderText({ letter, strings, app, texts }: Frame): string {
  const { expires, notes } = letter
  const { code, host, url } = texts
  const support = app.supportContact === undefined ? [] : [plainSupport(app.supportContact, strings)]
  const shownCode = letter.code === null ? [] : [`${letter.code.intro}\n${code}`]
  const button = `${letter.button}\n${url}`
  const lines = [
    letter.heading,
    ...letter.plainParagraphs.map((paragraph) => quoteNames(paragraph, strings)),
    ...(letter.code?.isFirst ? [...shownCode, button] : [button, ...shownCode]),
    host === null ? expires : `${expires}\n${strings.opens} ${host}`,
    ...(letter.signOff === null ? [] : [quoteNames(letter.signOff, strings)]),
    ...notes,
    ...support,
    ['--', app.name, app.branding.addressLine].filter((line) => line !== undefined).join('\n'),
  ]
  return `${lines.join('\n\n')}\n`
}
