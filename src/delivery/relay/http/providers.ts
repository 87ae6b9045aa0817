/** The mail APIs that Postern knows. */

import { newGmail } from '../../../services/google.ts'
import type { ApiAccount, MailApi } from '../../../services/mail-api.ts'
import { newGraph } from '../../../services/microsoft.ts'
import { newPostmark } from '../../../services/postmark.ts'
import { newResend } from '../../../services/resend.ts'
import { newSes } from '../../../services/ses.ts'

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
