/** Amazon SES v2, `SendEmail` with a whole message in base64, signed by SigV4. */
import { chooseEnvelopeSender } from '../domain/delivery/envelope.ts'
import type { HttpAnswer } from '../domain/delivery/http-answer.ts'
import { type ApiAccount, json, type MailApi, readText, type Signing, toJson } from './mail-api.ts'
import { signRequest } from './sigv4.ts'

type Ses = Extract<ApiAccount, { provider: 'ses' }>

const path = '/v2/email/outbound-emails'

/** An address that nobody can have verified. */
const unverified = 'invalid@invalid'

/** @param host the host of the requests, which is signed */
export const newSes = ({ configurationSet, keepsSender, ...key }: Ses, host: string): MailApi => {
  const newRequest = (value: object, { nowMs }: Signing) => {
    const body = toJson(value)
    const signed = signRequest({ ...key, service: 'ses' }, { host, path, body, nowMs }, json)
    return { path, headers: { ...json, ...signed }, body }
  }
  return {
    isIdempotent: false,
    secrets: [key.secret],
    newRequest: ({ bytes, to, ...senders }, signing) =>
      newRequest(
        {
          Content: { Raw: { Data: bytes.toString('base64') } },
          Destination: { ToAddresses: [to] },
          FeedbackForwardingEmailAddress: chooseEnvelopeSender(senders, keepsSender),
          ...(configurationSet !== null && { ConfigurationSetName: configurationSet }),
        },
        signing,
      ),
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
