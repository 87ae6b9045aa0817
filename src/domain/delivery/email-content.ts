/** The part of an email that is sealed at rest and deleted when the email ends. */
import type { EmailAddress } from '../request/email-address.ts'

export type EmailContent = {
  readonly to: EmailAddress
  readonly url: string
  readonly organisationName?: string
  readonly inviterName?: string
  /** `url` is a hosted link: the email then names the host that it opens. */
  readonly hosted?: true
  /** The tag of the language that the request asked for; absent for the app's own. */
  readonly locale?: string
  /** The domain of the Message-ID, fixed when the email is accepted. */
  readonly messageIdDomain: string
}
