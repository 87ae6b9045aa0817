/** The commands in front of a message (RFC 5321 §3.3), with the parameters that the relay's extensions allow. */
import type { EmailAddress } from '../../../domain/request/email-address.ts'
import type { Message } from '../relay.ts'

/** The service extensions that a relay offers. */
export type Extensions = {
  /** RFC 2920 */
  readonly pipelining: boolean
  /** RFC 3461 */
  readonly dsn: boolean
  /** RFC 1870 */
  readonly size: boolean
}

/** @param lines the reply to EHLO, without codes and without its first line */
export function readExtensions(lines: readonly string[]): Extensions {
  const names = new Set(lines.map((line) => line.split(/[ =]/)[0]?.toUpperCase()))
  return { pipelining: names.has('PIPELINING'), dsn: names.has('DSN'), size: names.has('SIZE') }
}

export const data = 'DATA\r\n'

/** MAIL, RCPT and DATA for one message; null if an address would break a command. */
export function envelopeCommands(
  { to, reference }: Pick<Message, 'to' | 'reference'>,
  { sender, bytes }: { readonly sender: EmailAddress; readonly bytes: number },
  { dsn, size }: Extensions,
): readonly string[] | null {
  if (/[\r\n<>]/.test(sender + to)) return null
  const mail = [
    `MAIL FROM:<${sender}>`,
    ...(size ? [`SIZE=${bytes}`] : []),
    ...(dsn ? ['RET=HDRS', `ENVID=${reference}`] : []),
  ]
  const rcpt = [`RCPT TO:<${to}>`, ...(dsn ? ['NOTIFY=FAILURE,DELAY', `ORCPT=rfc822;${encodeXtext(to)}`] : [])]
  return [`${mail.join(' ')}\r\n`, `${rcpt.join(' ')}\r\n`, data]
}

/** RFC 3461 §4: `xtext`. */
const encodeXtext = (text: string): string =>
  Buffer.from(text)
    .toString('latin1')
    .replace(
      /[^\x21-\x2a\x2c-\x3c\x3e-\x7e]/g,
      (byte) => `+${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )

/**
 * The replies by which a server accepts a command. Some answer DATA with 250, but not behind commands of a
 * pipeline.
 */
export const accepts = (command: string, { pipelining }: Extensions): RegExp => {
  if (command !== data) return /^2/
  return pipelining ? /^3/ : /^[23]/
}
