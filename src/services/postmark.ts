/** Postmark, which composes messages itself. Errors have numbers. */
import { type ApiAccount, type ApiMessage, json, type MailApi, readText, toJson } from './mail-api.ts'
import { formatMailbox } from './mailbox.ts'

type Postmark = Extract<ApiAccount, { provider: 'postmark' }>

const path = '/email'

export const newPostmark = ({ stream, token }: Postmark): MailApi => {
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
