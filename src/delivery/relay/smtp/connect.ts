/**
 * Opens a connection to a relay: TCP, greeting, EHLO, TLS and AUTH, by nodemailer's SMTPConnection. The
 * open socket then belongs to the caller (`smtp-session.ts`), and nodemailer has no part in it any more.
 *
 * Outside loopback TLS is required and its certificate verified; a stripped STARTTLS or a bad
 * certificate ends the connection before anything is sent. On loopback STARTTLS is used only if the
 * relay's address asks for it. If the relay's address says so, a relay in a private network gets mail without
 * TLS; its name is looked up for each connection, and must resolve to private addresses only. A relay of a
 * transport is reached at a public address, unless the service allows others.
 *
 * This is the only file that uses private parts of nodemailer (`Internals`). `connect` throws if a listener
 * is missing, and test/end-to-end/smtp-dialogue.test.ts shows that nothing of nodemailer listens any more.
 */
import type { Socket } from 'node:net'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { isLoopback } from '../../../domain/client-network.ts'
import { noReply } from '../../../domain/delivery/reply.ts'
import { parseReply, type SmtpFailure } from '../../../domain/delivery/smtp-reply.ts'
import { type EmailAddress, readDomain } from '../../../domain/request/email-address.ts'
import type { OAuthClient } from '../../../services/oauth-client.ts'
import type { SmtpMailService } from '../../../services/services.ts'
import { newGrant } from '../oauth/grants.ts'
import { type AccessToken, TokenFault, TokenSource } from '../oauth/token-source.ts'
import { type Extensions, readExtensions } from './envelope-commands.ts'
import { findAddress, type PublicOnly } from './find-address.ts'
import { explain, toAnswer, xoauth2 } from './xoauth2.ts'

export type SmtpAddress = {
  readonly protocol: 'smtp'
  readonly host: string
  readonly port: number
  /** TLS from the first byte (port 465) or by STARTTLS; `none` is for loopback and private networks only. */
  readonly tls: 'implicit' | 'starttls' | 'none'
  readonly credentials: Credentials | null
  /** The host name in EHLO; null for the domain of a sender (`withGreetingName`). */
  readonly greetingName: string | null
  /** It insists on a sender that it knows: emails get no bounce address of their own. */
  readonly keepsSender: boolean
  /** It is asked to return an email rather than deliver it after the link has expired (RFC 2852). */
  readonly returnsLate: boolean
  /** Given if it may have public addresses only. */
  readonly publicOnly?: PublicOnly
  /** Null for any other server. */
  readonly service: SmtpMailService | null
  /** Certificate authorities in PEM, in place of those that Node trusts. */
  readonly ca?: string
}

type Credentials = { readonly user: string } & (
  | { readonly pass: string }
  /** The user is the mailbox for which a token is asked. */
  | { readonly oauth: OAuthClient }
)

/** The address, with the domain of a sender as its greeting name if it has none. */
export const withGreetingName = (address: SmtpAddress, sender: EmailAddress): SmtpAddress =>
  address.greetingName === null ? { ...address, greetingName: readDomain(sender) } : address

/** The tokens by which a relay's account proves itself; null if it needs none. */
export const newTokens = ({ credentials }: SmtpAddress): TokenSource | null =>
  credentials !== null && 'oauth' in credentials ? new TokenSource(newGrant(credentials.oauth)) : null

/** An authenticated connection, and the service extensions that the relay offers on it. */
export type RelayConnection = {
  readonly socket: Socket
  readonly extensions: Extensions
}

const connectMs = 30_000
const greetingMs = 30_000
export const commandMs = 60_000

/**
 * Connects and authenticates. Returns the failure if it could not, or not before `signal`. A token that is
 * refused may have been taken back before its end, so one that is not fresh is replaced once.
 */
export async function connect(
  address: SmtpAddress,
  signal: AbortSignal,
  tokens: TokenSource | null = newTokens(address),
): Promise<RelayConnection | SmtpFailure> {
  if (tokens === null) return connectOnce(address, signal, null)
  for (let isLast = false; ; isLast = true) {
    const token = await getToken(tokens, signal)
    if ('stage' in token) return token
    const connected = await connectOnce(address, signal, token.text)
    if (!('stage' in connected) || !isRefusedLogin(connected)) return connected
    tokens.forget(token.text)
    if (isLast || !token.isKept) return connected
  }
}

const isRefusedLogin = ({ errorCode, reply }: SmtpFailure): boolean =>
  errorCode === 'EAUTH' && reply.code !== null && reply.code >= 500

/** A token, or why there is none: then nothing was asked of the relay. */
async function getToken(tokens: TokenSource, signal: AbortSignal): Promise<AccessToken | SmtpFailure> {
  try {
    return await tokens.get(signal)
  } catch (error) {
    if (!(error instanceof TokenFault)) throw error
    const { lasting, message, retryAfterMs } = error
    const errorCode = lasting ? 'EAUTH' : 'ETOKEN'
    return { stage: 'connect', reply: noReply(message), errorCode, retryAfterMs }
  }
}

async function connectOnce(
  address: SmtpAddress,
  signal: AbortSignal,
  token: string | null,
): Promise<RelayConnection | SmtpFailure> {
  const found = await findAddress({ ...address, isPrivate: leavesInClear(address) }, signal)
  if (typeof found !== 'string') return found
  if (signal.aborted) return toFailure(timedOut)
  const connection = newConnection(address, found)
  // An error may come at any time, also after the socket was taken over, and without a listener it is thrown.
  connection.on('error', () => {})
  const giveUp = () => connection.close()
  signal.addEventListener('abort', giveUp)
  try {
    await step(connection, (done) => connection.connect(done))
    const { credentials } = address
    if (credentials !== null)
      await step(connection, (done) => connection.login(toLogin(credentials, token), done)).catch(nameLogin)
  } catch (error) {
    connection.close()
    const fault = signal.aborted ? timedOut : (error as SmtpError)
    return toFailure(fault, { tls: address.tls, secrets: listSecrets(address, token) })
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
  try {
    return takeOver(connection)
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Whether emails leave this machine without TLS. */
export const leavesInClear = ({ host, tls }: SmtpAddress): boolean => tls === 'none' && !isLoopback(host)

/** Some servers end the connection in place of a reply to a login that they refuse. */
function nameLogin(error: SmtpError): never {
  if (error.response !== undefined || error.code === 'ETIMEDOUT') throw error
  throw Object.assign(error, { message: `${error.message} during the login: check user and password` })
}

/** A new object: nodemailer writes into it. */
const toLogin = (credentials: Credentials, token: string | null): SMTPConnection.AuthenticationType =>
  'pass' in credentials
    ? { user: credentials.user, pass: credentials.pass }
    : // Without the property `oauth2`, nodemailer would choose another method.
      { user: credentials.user, pass: token ?? '', method: 'XOAUTH2', oauth2: {} as never }

/** All spellings in which a login sends the password or the token. */
function listSecrets({ credentials }: SmtpAddress, token: string | null): string[] {
  if (credentials === null) return []
  const { user } = credentials
  if (token !== null) return [toAnswer(user, token), token]
  return 'pass' in credentials ? [credentials.pass, `\u0000${user}\u0000${credentials.pass}`] : []
}

type SmtpError = Error & { code?: string; response?: string; explained?: string }

const timedOut: SmtpError = Object.assign(new Error('no session in time'), { code: 'ETIMEDOUT' })

/** OpenSSL takes a greeting in plain text for a record of a wrong version. */
const plainPort = 'the port answers in plain text; use the scheme smtp (STARTTLS, usually port 587) instead of smtps'

type Failing = { readonly tls?: SmtpAddress['tls']; readonly secrets?: readonly string[] }

function toFailure(error: SmtpError, { tls, secrets = [] }: Failing = {}): SmtpFailure {
  const { code, message } = error
  const said = tls === 'implicit' && message.includes('wrong version number') ? plainPort : message
  const response = explain(error)
  const source = { kind: 'other', secrets } as const
  const reply = response === undefined ? noReply(`${code ?? 'ERROR'}: ${said}`, source) : parseReply(response, source)
  return { stage: 'connect', reply, errorCode: code ?? null }
}

/** @param host its host, or an address of it: the certificate is verified for its host */
const newConnection = (address: SmtpAddress, host: string): SMTPConnection =>
  new SMTPConnection({
    host,
    port: address.port,
    // Without a name, nodemailer sends that of the machine if it has a dot, and else `[127.0.0.1]`.
    ...(address.greetingName !== null && { name: address.greetingName }),
    secure: address.tls === 'implicit',
    requireTLS: address.tls === 'starttls',
    ignoreTLS: address.tls === 'none',
    connectionTimeout: connectMs,
    greetingTimeout: greetingMs,
    socketTimeout: commandMs,
    socketCloseTimeout: 0,
    customAuth: { XOAUTH2: xoauth2 },
    tls: {
      minVersion: 'TLSv1.2',
      ...(host !== address.host && { servername: address.host }),
      ...(address.ca === undefined ? {} : { ca: address.ca }),
    },
    logger: false,
  })

function step(connection: SMTPConnection, begin: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error | null) => {
      connection.removeListener('error', settle)
      connection.removeListener('end', ended)
      if (error == null) resolve()
      else reject(error)
    }
    const ended = () => settle(new Error('the connection was closed'))
    connection.once('error', settle)
    connection.once('end', ended)
    begin(settle)
  })
}

type Listener = (...values: unknown[]) => void

/**
 * Private parts of an open SMTPConnection (nodemailer 10.6); its types name `_socket` alone. A server that
 * knows HELO only has no lines.
 */
type Internals = { readonly _ehloLines?: readonly string[] } & {
  readonly [name in (typeof listeners)[number][1]]?: Listener
}

/** The listeners of an open SMTPConnection on its socket. */
const listeners = [
  ['data', '_onSocketData'],
  ['timeout', '_onSocketTimeout'],
  ['close', '_onSocketClose'],
  ['end', '_onSocketEnd'],
  ['error', '_onSocketError'],
] as const

/**
 * Takes the socket from nodemailer, unless it was closed meanwhile. Throws if a private part is missing.
 */
function takeOver(connection: SMTPConnection): RelayConnection | SmtpFailure {
  // The types leave these parts out, so each is optional here and looked for below.
  const internals = connection as SMTPConnection & Internals
  const { _socket: socket, _ehloLines: offered = [] } = internals
  if (!socket || socket.destroyed) return toFailure(new Error('the connection was closed'))
  for (const [event, name] of listeners) {
    const listener = internals[name]
    if (listener === undefined || !socket.listeners(event).includes(listener)) throw missing(name)
    socket.removeListener(event, listener)
  }
  return { socket, extensions: readExtensions(offered) }
}

const missing = (name: string): Error => new Error(`nodemailer has changed: its connection has no ${name}`)
