/** The mail APIs that Postern knows. */
import type { ApiAccount, MailApi } from './mail-api.ts'
import { newGmail } from './providers/gmail.ts'
import { newGraph } from './providers/graph.ts'
import { newPostmark } from './providers/postmark.ts'
import { newResend } from './providers/resend.ts'
import { newSes } from './providers/ses.ts'

/** @param host the host of its endpoint */
export function newMailApi(account: ApiAccount, host: string): MailApi {
  switch (account.provider) {
    case 'graph':
      return newGraph(account)
    case 'gmail':
      return newGmail()
    case 'ses':
      return newSes(account, host)
    case 'resend':
      return newResend(account)
    case 'postmark':
      return newPostmark(account)
    default:
      return account satisfies never
  }
}
