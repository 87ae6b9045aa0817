/** The Gmail API, `messages.send` with the bytes of a message. The recipient is the one of its `To`. */
import { type MailApi, readText } from './mail-api.ts'

const path = '/upload/gmail/v1/users/me/messages/send?uploadType=media'

export const newGmail = (): MailApi => {
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
