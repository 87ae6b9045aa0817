/**
 * The message on the wire (RFC 5322, MIME): headers, a text part and an HTML part. `Date` and
 * `Message-ID` are fixed at acceptance, so mail systems see every attempt as the same message. Parts
 * are 7bit if their text allows it, else quoted-printable.
 */
import * as mime from 'nodemailer/lib/mime-funcs'
import * as quotedPrintable from 'nodemailer/lib/qp'
import type { AppSettings } from '../../domain/app/settings.ts'
import type { Claim } from '../../store/store.ts'
import type { Rendered } from '../../templates/emails/render-email.ts'

export type MessageParts = {
  readonly claim: Pick<Claim, 'emailId' | 'type' | 'acceptedAt' | 'content'>
  readonly app: AppSettings
  readonly slug: string
  readonly rendered: Rendered
}

const lineMax = 76
const plainLineMax = 900 // RFC 5322 allows 998

export function composeMessage({ claim, app, slug, rendered }: MessageParts): Buffer {
  const boundary = `=_${claim.emailId}`
  const headers: [string, string][] = [
    ['From', mailbox(app.from)],
    ['To', claim.content.to],
    ...(app.replyTo === undefined ? [] : [['Reply-To', app.replyTo] as [string, string]]),
    ['Subject', encodeText(rendered.subject)],
    ['Date', new Date(claim.acceptedAt).toUTCString().replace('GMT', '+0000')],
    ['Message-ID', `<${claim.emailId}@${claim.content.messageIdDomain}>`],
    ['MIME-Version', '1.0'],
    ['Auto-Submitted', 'auto-generated'], // RFC 3834
    ['X-Auto-Response-Suppress', 'All'],
    ['Feedback-ID', `${claim.type}:${slug}:auth:postern`],
    ['X-Entity-Ref-ID', claim.emailId], // so that Gmail neither threads resends nor hides the repeated button
    ['Content-Type', `multipart/alternative; boundary="${boundary}"`],
  ]
  const head = headers.map(([name, value]) => mime.foldLines(`${name}: ${value}`, lineMax)).join('\r\n')
  const parts = [part('text/plain', rendered.text), part('text/html', rendered.html)]
  const body = parts.map((text) => `--${boundary}\r\n${text}\r\n`).join('')
  return Buffer.from(`${head}\r\n\r\n${body}--${boundary}--\r\n`)
}

/** RFC 2047 for text that is not plain ASCII. */
const encodeText = (text: string): string => mime.encodeWords(text, 'Q', 52, true)

function mailbox({ name, address }: { name: string; address: string }): string {
  const plain = /^[\x20-\x7e]*$/.test(name)
  const shown = plain ? `"${name.replace(/(["\\])/g, '\\$1')}"` : mime.encodeWord(name, 'Q', 52)
  return `${shown} <${address}>`
}

function part(type: string, text: string): string {
  const lines = text.split('\n')
  const plain = /^[\t\n\x20-\x7e]*$/.test(text) && lines.every((line) => line.length <= plainLineMax)
  const body = plain
    ? lines.join('\r\n')
    : quotedPrintable.wrap(quotedPrintable.encode(text.replace(/\n/g, '\r\n')), lineMax)
  const encoding = plain ? '7bit' : 'quoted-printable'
  return `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}`
}
