/**
 * Amazon SES: SMTP, and `SendEmail` of API v2 with a whole message in base64, signed by SigV4
 * (docs.aws.amazon.com/ses).
 */
import { chooseEnvelopeSender } from '../domain/app/envelope.ts'
import type { HttpAnswer } from '../domain/delivery/http-answer.ts'
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import { type JsonFields, toFields, toText } from './json-fields.ts'
import { json, type MailApi, readText, type Signing, toJson } from './mail-api.ts'
import type { ApiService, MailService } from './service.ts'
import { blocked, bounced, describeEvent, type Meanings, suppressed, unlessKnown } from './service-event.ts'
import { type ConfigurationSets, chooseSet, readSets } from './ses-sets.ts'
import { signRequest } from './sigv4.ts'
import { openSns, snsTopic } from './sns.ts'

type Account = {
  readonly region: string
  readonly keyId: string
  readonly secret: string
  readonly sets: ConfigurationSets
  /** As for SMTP servers. */
  readonly keepsSender: boolean
}

const traits: RelayTraits = { rewrites: 'dates', envelope: 'relay', include: null }

const example = 'ses://KEYID:SECRET@eu-west-1'

const api: ApiService<Account> = {
  example,
  options: ['set', 'envelope'],
  traits,
  endpoint: 'https://email.{host}.amazonaws.com',
  readAccount(url) {
    const wrong = `write ${example}: access key id, secret access key and region`
    const { user, password } = url.credentials()
    if (user === '' || password === '' || !/^[a-z]{2}(-[a-z]+)+-\d$/.test(url.host)) url.fault(wrong)
    return {
      region: url.host,
      keyId: user,
      secret: password,
      sets: readSets(url.option('set'), url.fault),
      keepsSender: url.keepsSender(),
    }
  },
  open: newApi,
}

const path = '/v2/email/outbound-emails'

/** An address that nobody can have verified. */
const unverified = 'invalid@invalid'

function newApi({ sets, keepsSender, ...key }: Account, host: string): MailApi {
  const newRequest = (value: object, { nowMs }: Signing) => {
    const body = toJson(value)
    const signed = signRequest({ ...key, service: 'ses' }, { host, path, body, nowMs }, json)
    return { path, headers: { ...json, ...signed }, body }
  }
  return {
    isIdempotent: false,
    secrets: [key.secret],
    newRequest: ({ bytes, lifeLeftMs, to, ...senders }, signing) => {
      const ConfigurationSetName = chooseSet(sets, lifeLeftMs)
      return newRequest(
        {
          Content: { Raw: { Data: bytes.toString('base64') } },
          Destination: { ToAddresses: [to] },
          FeedbackForwardingEmailAddress: chooseEnvelopeSender(senders, keepsSender),
          ...(ConfigurationSetName !== null && { ConfigurationSetName }),
        },
        signing,
      )
    },
    newProbe: (signing) => {
      const message = `From: ${unverified}\r\nTo: ${unverified}\r\nSubject: check\r\n\r\ncheck\r\n`
      const Data = Buffer.from(message).toString('base64')
      return newRequest({ Content: { Raw: { Data } }, Destination: { ToAddresses: [unverified] } }, signing)
    },
    readAcceptance: ({ status, json: body }) => (status === 200 ? readText(body, 'MessageId') || null : null),
    readError,
    kinds: {
      AccountSuspendedException: 'account',
      SendingPausedException: 'account',
      LimitExceededException: 'account',
      TooManyRequestsException: 'wait',
      ThrottlingException: 'wait', // the rate, or the quota of a day
      Throttling: 'wait',
      RequestExpired: 'account',
      RequestAbortedException: 'deferred',
    },
  }
}

/** The code is in a header, `NAME:http://…`, or in the body, `com.amazonaws#NAME`. */
function readError({ headers, json: body }: HttpAnswer) {
  const given = headers['x-amzn-errortype'] ?? readText(body, '__type')
  const [code = ''] = (given.split('#').at(-1) ?? '').split(':')
  return { code, text: readText(body, 'message') || readText(body, 'Message') }
}

/** By the type and subtype of a bounce, or by its type. */
const bounces: Meanings = {
  Permanent: bounced(true),
  'Permanent NoEmail': bounced(true, unlessKnown('no_mailbox')),
  'Permanent Suppressed': bounced(true, suppressed),
  'Permanent OnAccountSuppressionList': bounced(true, suppressed),
  Transient: bounced(false),
  'Transient MailboxFull': bounced(false, () => 'mailbox_full'),
  'Transient ContentRejected': bounced(false, blocked),
  Undetermined: bounced(),
}

/** Those of an identity have `notificationType`, and those of a configuration set `eventType`. */
function readEvent({ notificationType, eventType = notificationType, ...event }: JsonFields) {
  const part = toFields(event[firstLower(toText(eventType))])
  const { bouncedRecipients, complainedRecipients, delayedRecipients, recipients } = part
  const first = toFields([bouncedRecipients, complainedRecipients, delayedRecipients].flatMap(toList)[0])
  const recipient = first.emailAddress ?? toList(recipients)[0] ?? toList(toFields(event.mail).destination)[0]
  const details = { recipient, text: first.diagnosticCode, status: first.status }
  const isSilent = details.text === undefined && details.status === undefined
  const { bounceType, bounceSubType, complaintFeedbackType, complaintSubType, reason } = part
  switch (eventType) {
    case 'Bounce':
      // SES also calls automatic answers bounces, transient or undetermined: no server has said anything.
      if (/^(?:General|Undetermined)$/.test(toText(bounceSubType)) && bounceType !== 'Permanent' && isSilent)
        return null
      return (
        describeEvent(bounces, `${toText(bounceType)} ${toText(bounceSubType)}`, details) ??
        describeEvent(bounces, bounceType, details)
      )
    case 'Complaint':
      if (complaintSubType === 'OnAccountSuppressionList') return { ...bounced(true, suppressed), ...details }
      return { kind: complaintFeedbackType === 'not-spam' ? 'not_spam' : 'complained', ...details } as const
    case 'Delivery':
      return { kind: 'confirmed', ...details, text: part.smtpResponse } as const
    case 'DeliveryDelay':
      return { kind: 'delayed', ...details } as const
    case 'Reject':
      // SES found a virus, after it had accepted the email.
      return { ...bounced(true, () => 'policy'), ...details, text: reason }
    default:
      return null
  }
}

const firstLower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const ses: MailService = {
  name: 'ses',
  title: 'Amazon SES',
  smtp: { hosts: [/^email-smtp\.[a-z0-9-]+\.amazonaws\.com$/], traits },
  api,
  events: { proof: snsTopic, open: openSns, read: readEvent },
  advice: [
    [/SignatureDoesNotMatch|InvalidSignature/, 'the secret access key is wrong'],
    [/InvalidClientTokenId|UnrecognizedClient/, 'there is no such access key id, or it is turned off'],
    [/AccessDenied/, 'the key lacks the permission ses:SendEmail'],
    [/(signature|Signature).*expired|RequestTimeTooSkewed/, 'check the clock of this machine'],
    [/AccountSuspended|SendingPaused/, 'the provider has suspended the account: see its console'],
  ],
}
