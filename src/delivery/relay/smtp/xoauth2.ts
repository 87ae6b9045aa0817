/**
 * AUTH XOAUTH2 for nodemailer's connection. A token that makes the AUTH line longer than the 512 octets of
 * RFC 4954 §4 is sent after the server's 334; nodemailer's own method always puts it on that line.
 */
import type SMTPConnection from 'nodemailer/lib/smtp-connection'

type Handler = NonNullable<SMTPConnection.Options['customAuth']>[string]

/** With CR LF, 512 octets. */
const lineMax = 510

export const toAnswer = (user: string, token: string): string =>
  Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`).toString('base64')

/** @throws what a login throws; `response` is the text by which the server explained a refusal, if it did */
export const xoauth2: Handler = async ({ auth, authMethods, sendCommand }) => {
  if (!authMethods.includes('XOAUTH2')) throw new Error('the relay does not offer XOAUTH2')
  const answer = toAnswer(auth.user ?? '', auth.pass ?? '')
  const line = `AUTH XOAUTH2 ${answer}`
  let reply = await sendCommand(line.length <= lineMax ? line : 'AUTH XOAUTH2')
  if (reply.status === 334 && line.length > lineMax) reply = await sendCommand(answer)
  // A refusal is explained in a 334 first, as JSON in base64; an empty line asks for the 535.
  const explained = reply.status === 334 ? Buffer.from(reply.text ?? '', 'base64').toString() : ''
  if (reply.status === 334) reply = await sendCommand('')
  if (reply.status === 235) return
  throw Object.assign(new Error(reply.response), { explained })
}

/** The reply of a relay to a login, with its explanation. */
export const explain = ({ explained = '', response }: { response?: string; explained?: string }) =>
  response === undefined || explained === '' ? response : `${response} ${explained}`
