/** The commands in front of a message (RFC 5321 §3.3), with the parameters of the extensions offered. */
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
  /** RFC 2852: the fewest seconds that it takes for a deadline; null if it takes none. */
  readonly deliverBySeconds: number | null
}

/** @param lines the reply to EHLO, without codes and without its first line */
export function readExtensions(lines: readonly string[]): Extensions {
  const parameters = new Map(
    lines.map((line) => {
      const [name = '', ...rest] = line.split(/[ =]/)
      return [name.toUpperCase(), rest.join(' ')]
    }),
  )
  return {
    pipelining: parameters.has('PIPELINING'),
    dsn: parameters.has('DSN'),
    size: parameters.has('SIZE'),
    deliverBySeconds: readLeast(parameters.get('DELIVERBY')),
  }
}

/** RFC 2852 §2: nothing, or a number and other tokens behind commas. */
function readLeast(parameter: string | undefined): number | null {
  if (parameter === undefined) return null
  const match = /^ *(?:(\d{1,9}) *(?:,.*)?)?$/.exec(parameter)
  return match === null ? null : Number(match[1] ?? 0)
}

const deliverByMax = 999_999_999

/**
 * The seconds within which the relay is asked to deliver or return an email; null if it cannot be asked. One
 * less than are left, if it can be: a relay that counts whole seconds may begin up to one second late.
 */
export function deliverBy(lifeLeftMs: number, { deliverBySeconds }: Extensions): number | null {
  const left = Math.floor(lifeLeftMs / 1000)
  const seconds = Math.min(left > 1 ? left - 1 : left, deliverByMax)
  return deliverBySeconds === null || seconds < Math.max(deliverBySeconds, 1) ? null : seconds
}

/** Whether less is left than a relay can be asked for. Without a limit it could hold the email for days. */
export const isTooLateToAsk = (lifeLeftMs: number, { deliverBySeconds }: Extensions): boolean =>
  deliverBySeconds !== null && deliverBySeconds <= 1 && lifeLeftMs < 1000

/** Whether a reply to MAIL may be about a parameter, and not about the sender. */
export const refusesParameter = (reply: string): boolean =>
  /^(?:455|50[0124]|555)|^\d{3}[ -][45]\.5\.\d\b|\bBY=|deliver[ -]?by/i.test(reply)

/** Whether no part of an address would break a command. */
export const isSafeInCommands = (address: EmailAddress): boolean => !/[\r\n<>]/.test(address)

type Envelope = Pick<Message, 'to' | 'reference'> & {
  readonly sender: EmailAddress
  readonly bytes: number
  /** From `deliverBy`. */
  readonly seconds: number | null
}

const data = 'DATA\r\n'

/** MAIL, RCPT and DATA for one message. Its addresses are safe in commands. */
export function envelopeCommands(
  { to, reference, sender, bytes, seconds }: Envelope,
  { dsn, size }: Extensions,
): readonly string[] {
  const mail = [
    `MAIL FROM:<${sender}>`,
    ...(size ? [`SIZE=${bytes}`] : []),
    ...(dsn ? ['RET=HDRS', `ENVID=${reference}`] : []),
    ...(seconds === null ? [] : [`BY=${seconds};R`]),
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
