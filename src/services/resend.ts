/**
 * Resend, which composes messages itself. A request that is repeated with the key of an email that was sent
 * within 24 hours sends no second one.
 */
import { type ApiAccount, type ApiMessage, json, type MailApi, readText, toJson } from './mail-api.ts'
import { formatMailbox } from './mailbox.ts'

type Resend = Extract<ApiAccount, { provider: 'resend' }>

const path = '/emails'

export const newResend = ({ key }: Resend): MailApi => {
  const headers = { ...json, authorization: `Bearer ${key}`, 'user-agent': 'postern' }
  return {
    isIdempotent: true,
    secrets: [key],
    newRequest: (message) => ({
      path,
      headers: { ...headers, 'idempotency-key': message.id },
      body: toJson(toFields(message)),
    }),
    newProbe: () => ({ path, headers, body: toJson({}) }),
    // The key was used with another body, which named another remaining time: that email was sent.
    readAcceptance: ({ status, json: body }) =>
      status === 200
        ? readText(body, 'id') || null
        : status === 409 && readText(body, 'name') === 'invalid_idempotent_request'
          ? 'of an earlier attempt'
          : null,
    readError: ({ json: body }) => ({ code: readText(body, 'name'), text: readText(body, 'message') }),
    kinds: {
      concurrent_idempotent_requests: 'deferred',
      daily_quota_exceeded: 'account',
      monthly_quota_exceeded: 'account',
      missing_api_key: 'account',
      restricted_api_key: 'account',
      invalid_api_key: 'account',
      validation_error: 'refused', // with 403: the sender's domain is not verified
    },
  }
}

function toFields({ to, describe }: ApiMessage) {
  const { from, headers, html, replyTo, subject, text } = describe()
  return {
    from: formatMailbox(from),
    to: [to],
    ...(replyTo !== null && { reply_to: replyTo }),
    subject,
    html,
    text,
    headers: Object.fromEntries(headers),
  }
}
