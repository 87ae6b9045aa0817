/**
 * Advice on refusals that are explained badly: a sentence for an operator, chosen by the words of the reply.
 * It decides nothing else. Each service brings its own.
 */

import { namesGreeting } from '../domain/delivery/blame.ts'
import { adviseOnNetwork, explainReason, findWords } from '../domain/delivery/network-fault.ts'
import type { Advice } from './service.ts'
import { services } from './services.ts'

const general: readonly Advice[] = [
  [
    /invalid_grant.*(JWT|\biat\b|\bexp\b)/,
    'the signed request was refused: check the clock of this machine and the key file',
  ],
  [/invalid_grant/, 'the grant has been withdrawn or has expired: make a new key or refresh token'],
  [/invalid_client/, 'the client id or its secret is wrong'],
  [
    /\b5[0-9]{2} .*mechanism/i,
    'the server does not accept this way to log in: check what its provider says about SMTP',
  ],
  [/does not offer XOAUTH2/, 'the server does not accept tokens: use a password, or another server'],
  [/not verified/, 'verify the sender’s domain at the provider'],
  [/(daily|monthly)_quota_exceeded|LimitExceeded/, 'the quota of the account is used up'],
  [
    /self.signed certificate|unable to (get|verify)/,
    'set `ca` in the relay’s URL to the file of its certificate authority',
  ],
]

const all = [...services.flatMap(({ advice = [] }) => advice), ...general]

const onGreeting =
  'the relay refuses Postern’s EHLO name: set POSTERN_SMTP_NAME, or `name` in the relay’s URL, to a host name that contains a dot and resolves in DNS'

/** The advice on a reply or a reason of at most 300 characters; null if nothing is known. */
export const adviseOn = (reason: string): string | null =>
  namesGreeting(reason) ? onGreeting : (findWords(all, reason) ?? adviseOnNetwork(reason))

/** The reason with its advice; a fault of the network in words, and then its code. */
export const withAdvice = (reason: string): string => explainReason(reason, adviseOn)
