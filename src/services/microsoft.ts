/** Microsoft Graph, `sendMail` with a whole message in base64. The recipient is the one of its `To`. */
import { type ApiAccount, type MailApi, readText } from './mail-api.ts'

type Graph = Extract<ApiAccount, { provider: 'graph' | 'gmail' }>

export const newGraph = ({ mailbox }: Graph): MailApi => {
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
