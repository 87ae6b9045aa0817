/** The part of an email that is sealed at rest and deleted when the email ends. */
import type { EmailAddress } from './email-address.ts'

export type EmailContent = {
  readonly to: EmailAddress
  readonly url: string
  readonly organisationName?: string
  readonly inviterName?: string
  /** A one-time code to type, beside the link. */
  readonly code?: string
  /** The token of the link is the code: the code comes first, and the button opens the page to enter it. */
  readonly codeFirst?: true
  /** The purpose, where the type does not say it; only of emails that an auth server asked for. */
  readonly purpose?: Purpose
  /** `url` is a hosted link: the email then names the host that it opens. */
  readonly hosted?: true
  /** The tag of the language that the request asked for; absent for the app's own. */
  readonly locale?: string
  /** The domain of the Message-ID, fixed when the email is accepted. */
  readonly messageIdDomain: string
}

/** How an email shows a one-time code. */
export const codePlaces = ['none', 'beside', 'first'] as const
export type CodePlace = (typeof codePlaces)[number]

export function codePlace({ code, codeFirst }: Pick<EmailContent, 'code' | 'codeFirst'>): CodePlace {
  if (code === undefined) return 'none'
  return codeFirst === true ? 'first' : 'beside'
}

/**
 * Purposes that a verification can have: the owner of an address agrees to a change of it, or confirms a
 * change of the account by a code.
 */
export const purposes = ['address_change', 'identity'] as const
export type Purpose = (typeof purposes)[number]
