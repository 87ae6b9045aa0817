/**
 * Advice for the refusals that providers explain badly: a sentence for an operator, chosen by what the reply
 * says. It decides nothing else.
 */

import { lacks } from '../machine-faults.ts'
import { namesGreeting } from './smtp-reply.ts'

type Advice = readonly [says: RegExp, advice: string]

const newSecret = 'make a new one under "Certificates & secrets" and change `secret`'

const ofTokens: readonly Advice[] = [
  [/AADSTS7000222/, `the client secret has expired: ${newSecret}`],
  [/AADSTS7000215/, `the client secret is wrong: copy its Value, not its Secret ID, or ${newSecret}`],
  [/AADSTS700016/, 'the tenant has no application with the id in `client`: check `client` and `tenant`'],
  [/AADSTS900(02|023)/, 'there is no such tenant: check `tenant`'],
  [/AADSTS700027/, 'the certificate in `key` is not the one uploaded to the application, or has expired'],
  [/AADSTS700024/, 'the signed request is not valid at this time: check the clock of this machine'],
  [
    /AADSTS(65001|7000112)/,
    'an admin of the tenant must consent to the application’s permissions, or enable it',
  ],
  [/AADSTS(70011|500011)/, 'the tenant does not know this scope: check `scope`, or leave it out'],
  [
    /unauthorized_client/,
    'the application may not get this token: for Google, delegate the scope to the service account’s client id in the admin console (domain-wide delegation)',
  ],
  [/invalid_grant.*(Not a valid email|Invalid email or User)/, 'the mailbox does not exist at Google'],
  [
    /invalid_grant.*(JWT|\biat\b|\bexp\b)/,
    'the signed request was refused: check the clock of this machine and the key file',
  ],
  [/invalid_grant/, 'the grant has been withdrawn or has expired: make a new key or refresh token'],
  [/invalid_client/, 'the client id or its secret is wrong'],
]

const ofSmtp: readonly Advice[] = [
  [
    /\b535 5\.7\.3\b/,
    'the token is good, but the application may not use the mailbox: in Exchange, run New-ServicePrincipal with the object id of the enterprise application, then Add-MailboxPermission',
  ],
  [
    /\b5\.7\.139\b/,
    'SMTP AUTH is off for the mailbox or the tenant: turn it on (Set-CASMailbox -SmtpClientAuthenticationDisabled $false), or use graph:',
  ],
  [/\b5\.7\.30\b/, 'Microsoft has turned passwords off for SMTP: use oauth=microsoft, or graph:'],
  [/\b(5\.7\.60|5\.2\.252)\b|SendAsDenied/, 'the sender’s address is neither the mailbox nor an alias of it'],
  [/Application-specific password/i, 'Google wants an app password (2-step verification), or oauth=google'],
  [
    /\b5[0-9]{2} .*mechanism/i,
    'the server does not accept this way to log in: check what its provider says about SMTP',
  ],
  [/\b535 5\.7\.8\b/, 'user or password is wrong; at Google, use an app password'],
  [
    /\b5\.4\.5\b|Daily (SMTP relay|user sending)/,
    'the account’s daily limit is used up; it resets within 24 hours',
  ],
  [/SubmissionQuotaExceeded|QuotaExceededException/, 'the mailbox has reached Microsoft’s sending limit'],
  [/\b5\.7\.70[58]\b/, 'Microsoft has blocked the tenant from sending: see the message center of the tenant'],
  [/does not offer XOAUTH2/, 'the server does not accept tokens: use a password, or another server'],
]

const ofApis: readonly Advice[] = [
  [
    /ErrorAccessDenied/,
    'the application lacks the permission Mail.Send (of the kind "application"), or its policy leaves this mailbox out',
  ],
  [
    /ErrorInvalidUser|MailboxNotEnabledForRESTAPI|ResourceNotFound/,
    'there is no such mailbox, or it is not in Exchange Online',
  ],
  [/insufficientPermissions|ACCESS_TOKEN_SCOPE/, 'delegate the scope gmail.send to the service account'],
  [/failedPrecondition|FAILED_PRECONDITION/, 'Gmail is not turned on for the mailbox'],
  [/accessNotConfigured|SERVICE_DISABLED/, 'turn on the Gmail API in the project of the service account'],
  [/SignatureDoesNotMatch|InvalidSignature/, 'the secret access key is wrong'],
  [/InvalidClientTokenId|UnrecognizedClient/, 'there is no such access key id, or it is turned off'],
  [/AccessDenied/, 'the key lacks the permission ses:SendEmail'],
  [/(signature|Signature).*expired|RequestTimeTooSkewed/, 'check the clock of this machine'],
  [/not verified/, 'verify the sender’s domain at the provider'],
  [/AccountSuspended|SendingPaused/, 'the provider has suspended the account: see its console'],
  [/(daily|monthly)_quota_exceeded|LimitExceeded/, 'the quota of the account is used up'],
  [/invalid_api_key|missing_api_key|restricted_api_key/, 'the API key is wrong, or is not allowed to send'],
  [/^401 10\b/, 'the server token is wrong'],
  [/^422 (405|412|413)\b/, 'the account is out of credit, or not approved yet: see the provider’s console'],
]

const ofNetworks: readonly Advice[] = [
  ...Object.entries(lacks).map(([code, text]): Advice => [new RegExp(`\\b${code}\\b`), text]),
  [/ENOTFOUND/, 'there is no such host: check its name in the URL'],
  [
    /self.signed certificate|unable to (get|verify)/,
    'set `ca` in the relay’s URL to the file of its certificate authority',
  ],
]

const all = [...ofTokens, ...ofSmtp, ...ofApis, ...ofNetworks]

const onGreeting =
  'the relay refuses Postern’s EHLO name: set POSTERN_SMTP_NAME, or `name` in the relay’s URL, to a host name that contains a dot and resolves in DNS'

/** The advice on a reply or a reason of at most 300 characters; null if nothing is known. */
export const adviseOn = (reason: string): string | null =>
  namesGreeting(reason) ? onGreeting : (all.find(([says]) => says.test(reason))?.[1] ?? null)

const networkFaults: readonly (readonly [says: RegExp, words: string])[] = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/ECONNRESET|EPIPE/, 'the connection was lost'],
  [/ETIMEDOUT/, 'no answer came in time'],
  [/EHOSTUNREACH|ENETUNREACH/, 'its host cannot be reached'],
  [/EAI_AGAIN/, 'the name server did not answer'],
]

/** A fault of the network in words, from the code of the operating system; null for other reasons. */
export const nameNetworkFault = (reason: string): string | null =>
  networkFaults.find(([says]) => says.test(reason))?.[1] ?? null

/** The reason with its advice; a fault of the network in words, and then its code. */
export function withAdvice(reason: string): string {
  const fault = nameNetworkFault(reason)
  if (fault !== null) return `${fault} (${reason})`
  const advice = adviseOn(reason)
  return advice === null ? reason : `${reason} (${advice})`
}
