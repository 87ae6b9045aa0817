/** Checks of a captured email, as mail programs see it: size, images, link, text part. */
import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'
import { isLoopback } from '../../../../domain/client-network.ts'
import type { Html } from '../../../../templates/html.ts'
import { mark, section, table } from '../parts.ts'

/** Gmail cuts the HTML of an email that is larger, and hides its end. */
const clippedBytes = 102 * 1024

type Check = { readonly name: string; readonly ok: boolean; readonly detail: string }

function checkEmail({ html: page, text, url }: Pick<CapturedEmail, 'html' | 'text' | 'url'>): Check[] {
  const bytes = Buffer.byteLength(page)
  const images = [...page.matchAll(/<img\b[^>]*>/g)].map(([tag]) => tag)
  const withoutAlt = images.filter((tag) => !/\balt="[^"]/.test(tag)).length
  const insecure = images.filter((tag) => !/\bsrc="https:/.test(tag)).length
  const isLocal = /^https?:/.test(url) && isLoopback(new URL(url).hostname)
  return [
    {
      name: 'Size',
      ok: bytes < clippedBytes,
      detail: `${(bytes / 1024).toFixed(1)} KB; Gmail clips the HTML of an email at 102 KB.`,
    },
    { name: 'Plain text', ok: text.trim() !== '', detail: 'For readers without HTML, and for spam filters.' },
    {
      name: 'Images',
      ok: withoutAlt === 0 && insecure === 0,
      detail:
        images.length === 0
          ? 'None. Set a logo under Look to have one.'
          : `${images.length}, ${withoutAlt} without alternative text, ${insecure} not over https.`,
    },
    {
      name: 'Logo in dark mode',
      ok: images.length === 0 || /<img\b[^>]*class="plate"/.test(page),
      detail: 'A light background keeps a dark logo visible.',
    },
    {
      name: 'Link',
      ok: !isLocal,
      detail: isLocal
        ? 'It points to this machine, so it works only here.'
        : 'It points to the app. The page is not opened: that would use up the token.',
    },
  ]
}

export function renderChecks(email: CapturedEmail): Html {
  const rows = checkEmail(email).map(({ name, ok, detail }) => [
    name,
    ok ? mark('good', 'good') : mark('wait', 'check this'),
    detail,
  ])
  return section('Checks', table('Checks of this email', ['Check', 'Result', 'Detail'], rows))
}
