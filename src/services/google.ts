/**
 * Google Workspace: SMTP, the Gmail API and Google's tokens (developers.google.com). The API's
 * `messages.send` accepts the bytes of a message; the recipient is the one of its `To`.
 */
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import { type MailApi, readText } from './mail-api.ts'
import type { ApiService, MailService } from './service.ts'

const bounceTraits: RelayTraits = { rewrites: 'dates', envelope: 'bounce', include: '_spf.google.com' }

type Account = { readonly mailbox: string }

const api: ApiService<Account> = {
  scheme: 'gmail',
  example: 'gmail://mailbox@acme.com?key=file:PATH',
  options: [],
  traits: { ...bounceTraits, envelope: 'from' },
  endpoint: 'https://gmail.googleapis.com',
  tokenScope: () => 'https://www.googleapis.com/auth/gmail.send',
  readAccount: (url) => ({ mailbox: url.mailbox() }),
  open: newApi,
}

const path = '/upload/gmail/v1/users/me/messages/send?uploadType=media'

function newApi(): MailApi {
  const newRequest = (body: Buffer, token: string) => ({
    path,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'message/rfc822' },
    body,
  })
  return {
    isIdempotent: false,
    secrets: [],
    newRequest: ({ bytes }, { token }) => newRequest(bytes, token),
    newProbe: ({ token }) => newRequest(Buffer.alloc(0), token),
    readAcceptance: ({ status, json }) => (status === 200 ? readText(json, 'id') || null : null),
    readError: ({ json }) => ({
      code: readText(json, 'error', 'errors', '0', 'reason') || readText(json, 'error', 'status'),
      text: readText(json, 'error', 'message'),
    }),
    kinds: {
      failedPrecondition: 'account',
      FAILED_PRECONDITION: 'account',
      rateLimitExceeded: 'wait',
      userRateLimitExceeded: 'wait',
      dailyLimitExceeded: 'account',
    },
  }
}

export const google: MailService = {
  name: 'google',
  title: 'Google Workspace',
  smtp: {
    hosts: ['smtp.gmail.com', 'smtp-relay.gmail.com'],
    traits: bounceTraits,
    accountRefusal: { codes: ['5.4.5'], words: ['Daily SMTP relay limit', 'Daily user sending'] },
  },
  api,
  tokens: {
    tokenUrl: () => 'https://oauth2.googleapis.com/token',
    smtpScope: 'https://mail.google.com/',
  },
  advice: [
    [
      /unauthorized_client/,
      'the application may not get this token: for Google, delegate the scope to the service account’s client id in the admin console (domain-wide delegation)',
    ],
    [/invalid_grant.*(Not a valid email|Invalid email or User)/, 'the mailbox does not exist at Google'],
    [/Application-specific password/i, 'Google wants an app password (2-step verification), or oauth=google'],
    [/\b535 5\.7\.8\b(?!.*mechanism)/i, 'user or password is wrong; at Google, use an app password'],
    [/\b5\.4\.5\b|Daily (SMTP relay|user sending)/, 'the account’s daily limit is used up; it resets within 24 hours'],
    [/insufficientPermissions|ACCESS_TOKEN_SCOPE/, 'delegate the scope gmail.send to the service account'],
    [/failedPrecondition|FAILED_PRECONDITION/, 'Gmail is not turned on for the mailbox'],
    [/accessNotConfigured|SERVICE_DISABLED/, 'turn on the Gmail API in the project of the service account'],
  ],
}
