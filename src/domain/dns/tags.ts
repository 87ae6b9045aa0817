/** DKIM and DMARC records: `name=value; name=value`, where capitals count (RFC 6376, section 3.2). */

/** The values of tags by their names; null if the text is not of this form, or has a tag twice. */
export function readTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>()
  for (const part of text.split(';').map(trimBlanks)) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = trimBlanks(part.slice(0, Math.max(0, equals)))
    if (!/^[A-Za-z][A-Za-z0-9_]{0,30}$/.test(name) || tags.has(name)) return null
    tags.set(name, trimBlanks(part.slice(equals + 1)))
  }
  return tags
}

/** Not by `trim`, which also takes a no-break space: for receivers that is a part of the next name. */
const trimBlanks = (text: string): string => text.replace(/^[ \t\r\n]+/, '').replace(/[ \t\r\n]+$/, '')
