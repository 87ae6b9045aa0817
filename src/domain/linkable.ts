/** Text that mail clients turn into a link, an address or a telephone number. */

/** As programs read it: look-alikes in their plain form, without marks and characters that nobody sees. */
const simplify = (text: string): string =>
  text.normalize('NFKC').replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, '')

/** A dot with two letters after it. No top-level domain begins with a digit. */
const domain = /[^\s\p{P}]\.(?:\p{L}{2}|xn--)/u

export const hasDomain = (text: string): boolean => domain.test(simplify(text))

const schemes =
  'https?|ftp|file|mailto|tel|sms|sip|xmpp|callto|facetime|skype|news|nntp|data|javascript|bitcoin|ethereum|rtsp'

const linkable: readonly RegExp[] = [
  domain,
  /[a-z\d]。[a-z]{2,}(?!\p{L})/iu, // the full stop of Chinese and Japanese, which browsers take for a dot
  /@/u,
  /:\/\//u,
  /\\\\/u, // a share on a network, in Outlook
  new RegExp(`(?<![\\p{L}\\p{N}])(?:www\\.|(?:${schemes}):(?=\\S))`, 'iu'),
  /\d{1,3}(?:\.\d{1,3}){3}/u,
  /\p{Nd}(?:[\s()./+\-–]{0,3}\p{Nd}){4}/u, // five digits in a row
]

/** The words around such a part of a text; null for none. */
export function findLinkable(text: string): string | null {
  const simple = simplify(text)
  for (const pattern of linkable) {
    const found = pattern.exec(simple)
    if (found === null) continue
    const end = simple.indexOf(' ', found.index + found[0].length)
    return simple.slice(simple.lastIndexOf(' ', found.index) + 1, end === -1 ? undefined : end)
  }
  return null
}
