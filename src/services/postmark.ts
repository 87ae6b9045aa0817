/** Postmark (postmarkapp.com/developer). It composes messages itself; its errors have numbers. */
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import { type JsonFields, toText } from '../services/json-fields.ts'
import { basic } from './event-proof.ts'
import { type ApiMessage, formatMailbox, json, type MailApi, readText, toJson } from './mail-api.ts'
import type { ApiService, MailService } from './service.ts'
import { blocked, bounced, describeEvent, type Meanings, suppressed, unlessKnown } from './service-event.ts'

type Account = { readonly token: string; readonly stream: string }

const traits: RelayTraits = { rewrites: 'all', envelope: 'relay', include: null }

const api: ApiService<Account> = {
  example: 'postmark://TOKEN@api.postmarkapp.com',
  options: ['stream'],
  traits,
  endpoint: 'https://api.postmarkapp.com',
  readAccount: (url) => ({ token: url.key(), stream: url.option('stream') ?? 'outbound' }),
  open: newApi,
}

const path = '/email'

function newApi({ stream, token }: Account): MailApi {
  const headers = { ...json, accept: 'application/json', 'x-postmark-server-token': token }
  return {
    isIdempotent: false,
    secrets: [token],
    newRequest: (message) => ({ path, headers, body: toJson(toFields(message, stream)) }),
    newProbe: () => ({ path, headers, body: toJson({ MessageStream: stream }) }),
    readAcceptance: ({ status, json: body }) =>
      status === 200 && readText(body, 'ErrorCode') === '0' ? readText(body, 'MessageID') : null,
    readError: ({ json: body }) => ({
      code: readText(body, 'ErrorCode'),
      text: readText(body, 'Message'),
    }),
    // No credits, an account that is not approved, a trial that has ended.
    kinds: { 10: 'account', 405: 'account', 412: 'account', 413: 'account' },
  }
}

function toFields({ reference, to, describe }: ApiMessage, stream: string) {
  const { from, headers, html, replyTo, subject, text } = describe()
  return {
    From: formatMailbox(from),
    To: to,
    ...(replyTo !== null && { ReplyTo: replyTo }),
    Subject: subject,
    HtmlBody: html,
    TextBody: text,
    Headers: headers.map(([Name, Value]) => ({ Name, Value })),
    Metadata: { postern: reference },
    MessageStream: stream,
    TrackOpens: false,
    TrackLinks: 'None',
  }
}

/** By `Type`. Other types say nothing certain about a delivery. */
const bounces: Meanings = {
  HardBounce: bounced(true, unlessKnown('no_mailbox')),
  BadEmailAddress: bounced(true, unlessKnown('no_mailbox')),
  SoftBounce: bounced(false),
  // By SMTP, Postmark accepts an email before it refuses it, also for a recipient on its own list.
  SMTPApiError: bounced(true),
  Blocked: bounced(true, blocked),
  DMARCPolicy: bounced(true, blocked),
  SpamNotification: bounced(true, blocked),
  VirusNotification: bounced(true, blocked),
  ManuallyDeactivated: bounced(true, suppressed),
  Transient: 'delayed',
  DnsError: 'delayed',
}

/** One event a call. It returns no headers; the reference is in the metadata. */
function readEvent({ RecordType, Type, Recipient, Email, Details, Description }: JsonFields) {
  if (RecordType !== 'Bounce')
    return describeEvent({ Delivery: 'confirmed', SpamComplaint: 'complained' }, RecordType, {
      recipient: Recipient ?? Email,
    })
  return describeEvent(bounces, Type, { recipient: Email, text: toText(Details) || Description })
}

export const postmark: MailService = {
  name: 'postmark',
  title: 'Postmark',
  smtp: {
    hosts: ['smtp.postmarkapp.com', 'smtp-broadcasts.postmarkapp.com'],
    traits,
    referenceHeader: (reference) => `X-PM-Metadata-postern: ${reference}`,
  },
  api,
  events: { proof: basic, read: readEvent },
  advice: [
    [/^401 10\b/, 'the server token is wrong'],
    [/^422 (405|412|413)\b/, 'the account is out of credit, or not approved yet: see the provider’s console'],
  ],
}
