/**
 * A message over SMTP as what counts of it: the recipient, the links of all its texts, and the header fields
 * that an email of Postern can use. A MIME library undoes encodings, charsets and nesting.
 */
import PostalMime, { decodeWords, type Email } from 'postal-mime'
import { present } from '../domain/auth-hooks/fields.ts'
import { decodeReferences, findLinks } from '../domain/auth-hooks/smtp/find-links.ts'
import type { SubmittedMail } from '../domain/auth-hooks/smtp/mail-system.ts'
import { type Parsed, parsed, refuser } from '../domain/parsed.ts'

/** Authentication emails have some 20 KB, with pictures inside some 200. */
export const mailBytesMax = 256 * 1024
/** The work of the library grows with the lines, empty ones too. */
const linesMax = 10_000
const limits = { maxNestingDepth: 20, maxHeadersSize: 32 * 1024 }
const fieldCharactersMax = 1000

const refuse = refuser('message')

/** @param to the recipient that the client named; null for the first one of the header */
export async function readMail(bytes: Buffer, to: string | null): Promise<Parsed<SubmittedMail>> {
  if (bytes.length > mailBytesMax) return refuse('too_large', `The message has more than ${mailBytesMax / 1024} KiB.`)
  if (countLines(bytes) > linesMax) return refuse('too_many_lines', `The message has more than ${linesMax} lines.`)
  let mail: Email
  try {
    mail = await PostalMime.parse(bytes, { ...limits, forceRfc822Attachments: true })
  } catch {
    return refuse('malformed', 'The message cannot be read: its headers are too long, or its parts nested too deeply.')
  }
  const field = (name: string): string | undefined => {
    const value = mail.headers.find(({ key }) => key === name)?.value
    return value === undefined ? undefined : decodeWords(value.slice(0, fieldCharactersMax)).trim()
  }
  const links = new Set([...findLinks(mail.text ?? ''), ...findLinks(decodeReferences(mail.html ?? ''))])
  return parsed({
    to: to ?? mail.to?.find(({ address }) => address !== undefined)?.address ?? '',
    links: [...links],
    messageId: mail.messageId?.slice(0, fieldCharactersMax) || null,
    ...present({
      locale: field('content-language'),
      organisationName: field('postern-organisation-name'),
      inviterName: field('postern-inviter-name'),
    }),
  })
}

function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf('\n'); at >= 0 && lines <= linesMax; at = bytes.indexOf('\n', at + 1)) lines++
  return lines
}
