/**
 * Microsoft 365: SMTP, Microsoft Graph and the tokens of Entra ID (learn.microsoft.com). Graph's `sendMail`
 * accepts a whole message in base64; the recipient is the one of its `To`.
 */
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import { type MailApi, readText } from './mail-api.ts'
import type { ApiService, MailService } from './service.ts'

const bounceTraits: RelayTraits = {
  rewrites: 'dates',
  envelope: 'bounce',
  include: 'spf.protection.outlook.com',
}

/** Microsoft's limits for a mailbox. */
const bounds = { connectionsMax: 3, rate: 0.5 }

type Account = { readonly mailbox: string }

const api: ApiService<Account> = {
  scheme: 'graph',
  example: 'graph://mailbox@acme.com?tenant=T&client=ID&secret=file:PATH',
  options: [],
  traits: { ...bounceTraits, envelope: 'from' },
  bounds,
  endpoint: 'https://graph.microsoft.com',
  tokenScope: (endpoint) => `${endpoint}/.default`,
  readAccount: (url) => ({ mailbox: url.mailbox() }),
  open: newApi,
}

function newApi({ mailbox }: Account): MailApi {
  const path = `/v1.0/users/${encodeURIComponent(mailbox)}/sendMail`
  const newRequest = (body: string, token: string) => ({
    path,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' },
    body: Buffer.from(body),
  })
  return {
    isIdempotent: false,
    secrets: [],
    newRequest: ({ bytes }, { token }) => newRequest(bytes.toString('base64'), token),
    newProbe: ({ token }) => newRequest('no base64', token),
    readAcceptance: ({ status }) => (status === 202 ? '' : null),
    readError: ({ json }) => ({
      code: readText(json, 'error', 'code'),
      text: readText(json, 'error', 'message'),
    }),
    kinds: { ErrorSendAsDenied: 'refused' },
  }
}

const isGuid = (text: string): boolean => /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i.test(text)

const newSecret = 'make a new one under "Certificates & secrets" and change `secret`'

export const microsoft: MailService = {
  name: 'microsoft',
  title: 'Microsoft 365',
  smtp: {
    hosts: ['smtp.office365.com'],
    traits: bounceTraits,
    bounds,
    keepsSender: true,
    accountRefusal: {
      codes: ['5.7.705', '5.7.708'],
      words: ['SubmissionQuotaExceeded', 'QuotaExceededException'],
    },
  },
  api,
  tokens: {
    tokenUrl: (tenant) => `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/token`,
    hasTenants: true,
    smtpScope: 'https://outlook.office365.com/.default',
    faultOfSecret: (secret) =>
      isGuid(secret) ? 'secret is the Secret ID; copy the Value of the client secret, which is shown once' : null,
  },
  advice: [
    [/AADSTS7000222/, `the client secret has expired: ${newSecret}`],
    [/AADSTS7000215/, `the client secret is wrong: copy its Value, not its Secret ID, or ${newSecret}`],
    [/AADSTS700016/, 'the tenant has no application with the id in `client`: check `client` and `tenant`'],
    [/AADSTS900(02|023)/, 'there is no such tenant: check `tenant`'],
    [/AADSTS700027/, 'the certificate in `key` is not the one uploaded to the application, or has expired'],
    [/AADSTS700024/, 'the signed request is not valid at this time: check the clock of this machine'],
    [/AADSTS(65001|7000112)/, 'an admin of the tenant must consent to the application’s permissions, or enable it'],
    [/AADSTS(70011|500011)/, 'the tenant does not know this scope: check `scope`, or leave it out'],
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
    [/SubmissionQuotaExceeded|QuotaExceededException/, 'the mailbox has reached Microsoft’s sending limit'],
    [/\b5\.7\.70[58]\b/, 'Microsoft has blocked the tenant from sending: see the message center of the tenant'],
    [
      /ErrorAccessDenied/,
      'the application lacks the permission Mail.Send (of the kind "application"), or its policy leaves this mailbox out',
    ],
    [
      /ErrorInvalidUser|MailboxNotEnabledForRESTAPI|ResourceNotFound/,
      'there is no such mailbox, or it is not in Exchange Online',
    ],
  ],
}
