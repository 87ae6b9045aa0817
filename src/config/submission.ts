/** Where systems send their emails over SMTP. */
import { isLoopback } from '../domain/client-network.ts'
import { formatHostPort } from '../domain/host-port.ts'
import type { SmtpAddress } from '../smtp/smtp-listener.ts'
import { readAddress } from './listeners.ts'
import type { Reader } from './reader.ts'
import { readTlsFiles } from './tls-files.ts'

export type SubmissionConfig = {
  /** With STARTTLS, or in clear on loopback; null if this process has no such listener. */
  readonly submission: SmtpAddress | null
  /** With TLS from the beginning. */
  readonly submissions: SmtpAddress | null
  /** How systems reach it, as `smtp://mail.example.com:587`; null if that is not known. */
  readonly submissionUrl: string | null
}

const listenName = 'POSTERN_SUBMISSION_LISTEN'
const tlsListenName = 'POSTERN_SUBMISSION_TLS_LISTEN'
const filesName = 'POSTERN_SUBMISSION_TLS'
const urlName = 'POSTERN_SUBMISSION_URL'

/** @param options.listens whether the process has the role `submission` */
export function readSubmission(given: Reader, { listens }: { readonly listens: boolean }): SubmissionConfig {
  // A command only shows the addresses, and may not be allowed to read the key.
  const reader = given.mode === 'command' ? { ...given, fault: () => {} } : given
  const { fault, isSet } = reader
  const tls = readTlsFiles(reader, filesName)
  const submission = isSet(listenName) ? { address: readAddress(reader, listenName), tls } : null
  const submissions = isSet(tlsListenName) ? { address: readAddress(reader, tlsListenName), tls } : null
  if (submission !== null && tls === null && !isLoopback(submission.address.host))
    fault(`${listenName} is not on loopback, and passwords may not cross a network in clear: set ${filesName}`)
  if (submissions !== null && tls === null) fault(`${tlsListenName} requires ${filesName}`)
  return {
    submission: listens ? submission : null,
    submissions: listens ? submissions : null,
    submissionUrl: readUrl(reader, ownUrl(submission, submissions)),
  }
}

/** The listener on loopback; null if there is none. */
function ownUrl(submission: SmtpAddress | null, submissions: SmtpAddress | null): string | null {
  const own = submission ?? submissions
  if (own === null || !isLoopback(own.address.host)) return null
  const scheme = own === submission ? 'smtp' : 'smtps'
  return `${scheme}://${formatHostPort(own.address)}${own.tls === null ? '?tls=none' : ''}`
}

function readUrl({ fault, text }: Reader, own: string | null): string | null {
  const given = text(urlName)
  if (given === '') return own
  if (URL.canParse(given) && /^smtps?:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:\?tls=none)?$/i.test(given)) return given
  fault(`${urlName} must look like smtp://mail.example.com:587, or smtps://mail.example.com:465 for implicit TLS`)
  return null
}
