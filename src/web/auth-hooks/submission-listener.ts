/**
 * The submission listener (RFC 6409): systems that can only send over SMTP log in with the slug of an app and
 * a secret of theirs. A message is answered 250 once its email is in the queue; its text is discarded.
 */

import { parseSlug } from '../../domain/app/app.ts'
import { type KeyHash, parseAuthHookSecret } from '../../domain/app/delivery-key.ts'
import type { AuthHook } from '../../domain/auth-hooks/auth-hook.ts'
import { findSystem } from '../../domain/auth-hooks/auth-hooks.ts'
import { isPrivateNetwork, listShares, toClientAddress } from '../../domain/client-network.ts'
import { newId } from '../../domain/id.ts'
import type { Limit } from '../../domain/limit.ts'
import { Rates } from '../../domain/rates.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { Turns } from '../../domain/turns.ts'
import { type AuthHookOutcome, acceptSubmission } from '../../intake/accept-auth-hook.ts'
import { mailReader } from '../../intake/mail-reader.ts'
import { mailBytesMax } from '../../intake/read-mail.ts'
import { toRequestEvent } from '../../intake/request-event.ts'
import {
  type Incoming,
  readBounded,
  type Session,
  SmtpListener,
  type SmtpListenerOptions,
  smtpReply,
} from '../../smtp/smtp-listener.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { AuthHookSecrets } from './auth-hook-secrets.ts'
import type { AuthHooksDeps } from './auth-hooks-listener.ts'

export type SubmissionDeps = Omit<AuthHooksDeps, 'basePath' | 'random'>

/** Each may hold a message of 256 KiB. */
const connectionsMax = 200
/** Messages of one app that may arrive at a time. The other connections are for other apps. */
const appMessagesMax = 50
/** Failed log-ins of one network. Beyond that each ends its connection, and the right secret still works. */
const failures: Limit = { quota: 20, windowUs: 600e6 }
/** Longer texts of an answer are cut: an SMTP line has at most 512 bytes. */
const answerCharactersMax = 440

const wrongLogin = smtpReply(
  535,
  '5.7.8 Wrong user or password. The user is the slug of the app, the password the psh_... that postern auth-hook connect printed',
)
const tooManyFailures = smtpReply(421, '4.7.0 Too many failed logins from your network; try again later')
const noLogin = smtpReply(530, '5.7.0 Log in first, after STARTTLS')
const notNow = smtpReply(451, '4.3.0 The email cannot be queued now; try again later')
const tooLarge = smtpReply(552, `5.3.4 The message is larger than ${mailBytesMax / 1024} KiB`)

type Login = { readonly keyHash: KeyHash; readonly system: AuthHook; readonly slug: string }

export class SubmissionListener {
  readonly #deps: SubmissionDeps
  readonly #listener: SmtpListener
  readonly #secrets: AuthHookSecrets
  readonly #isProxy: (address: string) => boolean
  readonly #failed = new Rates()
  readonly #logins = new WeakMap<Session, Login>()
  /** How many messages of each app are arriving. */
  readonly #arriving = new Map<string, number>()
  readonly #turns = new Turns()

  /** @param options.isImplicit TLS begins with the connection */
  constructor(
    deps: SubmissionDeps,
    { isImplicit, ...options }: SmtpListenerOptions & { readonly isImplicit: boolean },
  ) {
    const { tls } = options
    this.#deps = deps
    this.#isProxy = deps.isProxy ?? isPrivateNetwork
    this.#secrets = new AuthHookSecrets(deps.store, deps.ring)
    this.#listener = new SmtpListener(options, {
      banner: 'authentication emails',
      connectionsMax,
      messageMax: mailBytesMax,
      times: { stepMs: 60_000, sessionMs: 600_000 },
      server: {
        secure: isImplicit,
        authMethods: ['PLAIN', 'LOGIN'],
        allowInsecureAuth: tls === null,
        onAuth: ({ password, username }, session, done) =>
          void this.#logIn(username ?? '', password ?? '', session).then(
            (user) => done(null, { user }),
            (error) => done(error),
          ),
      },
      judgeRecipient: (address, session) => {
        if (!this.#logins.has(session)) return noLogin
        const parsed = parseEmailAddress(address, 'to')
        return parsed.ok ? null : smtpReply(553, `5.1.3 ${toAnswer(parsed.issues[0]?.message ?? 'no address')}`)
      },
      take: (message, session) => this.#take(message, session),
    })
  }

  /** Resolves to its address, as `smtp://127.0.0.1:4027`. */
  listen(): Promise<string> {
    return this.#listener.listen()
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  /** Resolves to the name of the user; rejects with a reply. */
  async #logIn(slug: string, password: string, session: Session): Promise<string> {
    try {
      const hash = parseAuthHookSecret(password)
      const isWellFormed = parseSlug(slug).ok && hash !== null
      const found = isWellFormed ? await this.#secrets.find(slug, null, (secret) => secret.hash === hash) : null
      const system = found === null ? null : findSystem(found.hook)
      if (found !== null && system?.auth.kind === 'login') {
        this.#logins.set(session, { keyHash: found.hash, system, slug })
        return slug
      }
    } catch (error) {
      throw this.#explain(error)
    }
    this.#report({ answer: { caller: null, rejection: { code: 'invalid_key' } }, message: null }, performance.now())
    throw this.#chargeFailure(session.remoteAddress) ? wrongLogin : tooManyFailures
  }

  /** False for a network that has failed too often. */
  #chargeFailure(address: string): boolean {
    const name = listShares(address, this.#isProxy)[0]?.name ?? ''
    return this.#failed.charge({ name, limit: failures }) === 0
  }

  async #take({ stream, cutOff }: Incoming, session: Session): Promise<string> {
    const login = this.#logins.get(session)
    const arriving = this.#arriving.get(login?.slug ?? '') ?? 0
    if (login === undefined || arriving >= appMessagesMax) {
      cutOff()
      throw notNow
    }
    this.#arriving.set(login.slug, arriving + 1)
    try {
      return await this.#takeFrom(login, stream, session)
    } finally {
      const left = (this.#arriving.get(login.slug) ?? 1) - 1
      if (left > 0) this.#arriving.set(login.slug, left)
      else this.#arriving.delete(login.slug)
    }
  }

  async #takeFrom(login: Login, stream: Incoming['stream'], session: Session): Promise<string> {
    const begunAtMs = performance.now()
    const bytes = await readBounded(stream, mailBytesMax, this.#turns)
    if (bytes === null) throw tooLarge
    if (this.#deps.isStopping()) throw notNow
    try {
      const outcome = await this.#accept(bytes, session, login)
      this.#report(outcome, begunAtMs)
      return answerOf(outcome)
    } catch (error) {
      throw this.#explain(error)
    }
  }

  async #accept(bytes: Buffer, { envelope, remoteAddress }: Session, login: Login): Promise<AuthHookOutcome> {
    const { keyHash, slug, system } = login
    const mail = await mailReader.read(slug, bytes, envelope.rcptTo[0]?.address ?? '')
    const address = () => toClientAddress(remoteAddress) ?? ''
    const outcome = await acceptSubmission(this.#deps, { system, keyHash, mail, address })
    if ('rejection' in outcome.answer && outcome.answer.rejection.code === 'invalid_key')
      this.#secrets.forget(slug, null)
    return outcome
  }

  #report({ answer, message }: AuthHookOutcome, begunAtMs: number): void {
    const requestId = newId('req', Date.now())
    if ('error' in answer)
      this.#deps.emit({ kind: 'store_unavailable', requestId, error: answer.error as Error, work: 'request' })
    const facts = { requestId, traceId: null, tookMs: performance.now() - begunAtMs }
    this.#deps.emit(toRequestEvent({ ...facts, source: 'smtp', message }, answer))
  }

  /** The reply for an error; a bug is reported. */
  #explain(error: unknown): Error {
    if (error instanceof Error && 'responseCode' in error) return error
    if (!(error instanceof StoreUnavailable)) this.#deps.emit({ kind: 'bug', doing: 'taking a message', error })
    return notNow
  }
}

/** The text behind 250. Throws a reply that says what is wrong and what to do. */
function answerOf({ answer }: AuthHookOutcome): string {
  if (!('rejection' in answer)) return `2.0.0 Queued as ${answer.emailId}`
  const { rejection } = answer
  const { status } = refusals[rejection.code]
  const text = toAnswer(`${rejection.code}: ${describe(rejection)}`)
  if (status === 503) throw smtpReply(451, `4.3.0 ${text}`)
  if (status === 429) throw smtpReply(452, `4.7.1 ${text}`)
  throw smtpReply(550, `5.7.1 ${text}`)
}

function describe({ advice, code, issues = [], message }: Rejection): string {
  const faults = issues.map((issue) => issue.message)
  const text = faults.length > 0 ? faults : [message ?? refusals[code].message]
  return [...text, ...(advice === undefined ? [] : [advice])].join(' ')
}

/** One line of ASCII. */
const toAnswer = (text: string): string =>
  text
    .replaceAll('’', "'")
    .replaceAll('…', '...')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, answerCharactersMax)
