/** The form of DKIM and DMARC records: `name=value; name=value`. */

/** The first value of each tag, by its name in small letters; null if the text is not of this form. */
export function readTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>()
  for (const part of text.split(';').map((tag) => tag.trim())) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = part.slice(0, Math.max(0, equals)).trim().toLowerCase()
    if (!/^[a-z][a-z0-9_]{0,30}$/.test(name)) return null
    if (!tags.has(name)) tags.set(name, part.slice(equals + 1).trim())
  }
  return tags
}
