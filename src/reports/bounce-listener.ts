/**
 * The bounce listener: takes mail to bounce addresses over SMTP, and nothing else. It says 250 once a report
 * is recorded; while it cannot be, 451, and the sender keeps it. A stranger's mail ends at RCPT, without the
 * store.
 */

import { reportMax } from '../domain/bounds.ts'
import { isPrivateNetwork } from '../domain/client-network.ts'
import { findReferences, type Reference } from '../domain/delivery/reference.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { Turns } from '../domain/turns.ts'
import {
  type Incoming,
  readBounded,
  type Session,
  SmtpListener,
  type SmtpListenerOptions,
  smtpReply,
} from '../smtp/smtp-listener.ts'
import { StoreUnavailable } from '../store/store.ts'
import { openMail } from './read-report.ts'
import { matchReport, noMatch, type ReportDeps, recordReport } from './record-report.ts'
import { ReportRates } from './report-rates.ts'

export type BounceListenerOptions = SmtpListenerOptions & {
  /** Complaints, which know no address of an email, come to this one. */
  readonly bounceAddress: EmailAddress | null
}

/** Each may hold a report of 512 KiB. */
const connectionsMax = 50

const noMailbox = smtpReply(550, '5.1.1 There is no such bounce address here')
const tooMuch = smtpReply(451, '4.7.0 Too much mail from your network; try again later')
const tooLarge = smtpReply(552, '5.3.4 The report is larger than 512 KiB')
const notNow = smtpReply(451, '4.3.0 The report cannot be recorded now; try again later')

export class BounceListener {
  readonly #deps: ReportDeps
  readonly #bounceAddress: BounceListenerOptions['bounceAddress']
  readonly #listener: SmtpListener
  readonly #rates: { readonly ofAnybody: ReportRates; readonly ofReferences: ReportRates }
  readonly #turns = new Turns()

  constructor(deps: ReportDeps, { bounceAddress, ...options }: BounceListenerOptions) {
    const { isProxy = isPrivateNetwork } = options
    this.#deps = deps
    this.#bounceAddress = bounceAddress
    this.#rates = { ofAnybody: new ReportRates(isProxy), ofReferences: new ReportRates(isProxy) }
    this.#listener = new SmtpListener(options, {
      banner: 'reports about emails',
      connectionsMax,
      messageMax: reportMax,
      times: { stepMs: 60_000, sessionMs: 120_000 },
      server: { disabledCommands: ['AUTH'] },
      judgeRecipient: (address, session) => this.#judgeRecipient(address, session),
      take: async (message, session) => {
        await this.#take(message, session)
        return undefined
      },
    })
  }

  /** Resolves to its address, as `smtp://127.0.0.1:4024`. */
  listen(): Promise<string> {
    return this.#listener.listen()
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  #judgeRecipient(address: string, { remoteAddress }: Session): Error | null {
    const isKnown = this.#isBounceAddress(address) || this.#namesEmail(findReferences(address))
    if (!isKnown) return noMailbox
    return this.#ratesOf(address).mayBegin(remoteAddress) ? null : tooMuch
  }

  async #take({ cutOff, stream }: Incoming, { envelope, remoteAddress }: Session): Promise<void> {
    const to = envelope.rcptTo[0]?.address ?? ''
    const rates = this.#ratesOf(to)
    const bytes = await readBounded(stream, reportMax, this.#turns, (size) => {
      if (!rates.charge(remoteAddress, size)) cutOff()
    })
    if (bytes === null) throw tooLarge
    const sender = envelope.mailFrom === false ? '' : envelope.mailFrom.address
    const delivered = Buffer.concat([Buffer.from(`Return-Path: <${sender}>\r\n`), bytes]) // RFC 5321 §4.4
    await this.#turns.next(bytes.length)
    try {
      // Mail that names no email here is not read further: anybody may send it to the bounce address.
      const { references, read } = await openMail(delivered, to)
      const match = this.#namesEmail(references) ? await matchReport(this.#deps.store, await read()) : noMatch
      const { kind } = await recordReport(this.#deps, match, 'mail')
      if (kind === 'waiting') throw notNow
    } catch (error) {
      if (error === notNow) throw notNow
      if (!(error instanceof StoreUnavailable)) this.#deps.emit({ kind: 'bug', doing: 'recording a report', error })
      throw notNow
    }
  }

  #namesEmail(references: readonly Reference[]): boolean {
    return references.some((reference) => this.#deps.store.openReference(reference) !== null)
  }

  /** Strangers know no address but the bounce address: they do not use up the rate of the others. */
  #ratesOf(to: string): ReportRates {
    return this.#isBounceAddress(to) ? this.#rates.ofAnybody : this.#rates.ofReferences
  }

  #isBounceAddress(to: string): boolean {
    return to.toLowerCase() === this.#bounceAddress?.toLowerCase()
  }
}
