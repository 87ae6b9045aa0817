/** A page of ours as text, so that two of them can be compared, and a change be read. */

/** Elements that a reader sees as a line. */
const lines =
  /^(h[1-6]|p|li|tr|form|section|div|table|dl|dt|dd|fieldset|legend|label|nav|pre|details|summary|header|footer|svg|figure|caption)$/

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" }

const decode = (text: string): string => text.replace(/&(\w+|#\d+);/g, (all, name: string) => entities[name] ?? all)

const attribute = (attributes: string, name: string): string | null => {
  const found = new RegExp(`(?:^|\\s)${name}(?:="([^"]*)")?(?=\\s|/|$)`).exec(attributes)
  return found === null ? null : decode(found[1] ?? '')
}

/** Stands for an opening tag: its address, its value, or nothing. */
function describeTag(name: string, attributes: string): string {
  const of = (attr: string) => attribute(attributes, attr)
  const marks = ['checked', 'selected', 'disabled', 'required', 'open', 'hidden']
    .filter((mark) => of(mark) !== null)
    .map((mark) => ` ${mark}`)
    .join('')
  const state = of('aria-current') ?? of('aria-invalid')
  const after = `${marks}${state === null ? '' : ` ${state}`}`
  switch (name) {
    case 'a':
      return `[${of('href') ?? ''}${after}] `
    case 'form':
      return `{${of('method') ?? 'get'} ${of('action') ?? ''}}`
    case 'button':
      return `<${of('name') ?? 'button'}=${of('value') ?? ''}${after}> `
    case 'input':
    case 'select':
    case 'textarea':
      return `<${of('name') ?? name} ${of('type') ?? name}=${of('value') ?? ''}${after}> `
    case 'option':
      return ` <${of('value') ?? ''}${after}> `
    case 'img':
    case 'iframe':
      return `<${name} ${of('src') ?? ''} "${of('alt') ?? of('title') ?? ''}">`
    case 'span':
    case 'p':
    case 'div':
      return of('class') === null ? '' : `(${of('class')}) `
    case 'td':
    case 'th':
      return ' | '
    default:
      return of('aria-label') === null ? '' : `(${of('aria-label')}) `
  }
}

/** Text, links, and fields with their values, a line each block. */
export function readPage(html: string): string {
  const main = html.replace(/<(style|script)\b.*?<\/\1>/gs, '')
  const text = main.replace(
    /<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/gi,
    (_, end: string, name: string, attributes: string) => {
      const line = lines.test(name) ? '\n' : ''
      return end === '' ? `${line}${describeTag(name, attributes)}` : line
    },
  )
  return decode(text)
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter((line) => line !== '')
    .join('\n')
}
