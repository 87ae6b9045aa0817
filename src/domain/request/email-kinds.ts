/**
 * The types of emails, each declared once. New types come last, and there are ten at most: sealed links hold
 * the position, as one digit. Its words are in the files of the languages, below the key `texts`.
 */
type EmailKind = {
  /** As pages name it. */
  readonly title: string
  readonly texts: string
  /** The request may have a one-time code, and an auth server a purpose. */
  readonly takesCode: boolean
  /** The request names an organisation, and maybe who invites. */
  readonly hasNames: boolean
  /** A newer one with the same kind of link cancels it while it waits. */
  readonly isSuperseded: boolean
  /** The recipient asked for it. Others are suppressed for longer. */
  readonly isAsked: boolean
  /** With its link, somebody else could sign in or choose a password. */
  readonly isPrivate: boolean
}

/** Asked for by its recipient. */
const own = { takesCode: true, hasNames: false, isSuperseded: true, isAsked: true } as const

export const emailKinds = {
  magic_link: { title: 'Sign-in link', texts: 'magicLink', ...own, isPrivate: true },
  email_verification: { title: 'Verification', texts: 'emailVerification', ...own, isPrivate: false },
  password_reset: { title: 'Password reset', texts: 'passwordReset', ...own, isPrivate: true },
  organisation_invite: {
    title: 'Invitation',
    texts: 'organisationInvite',
    takesCode: false,
    hasNames: true,
    // Two invitations of a person are to two organisations.
    isSuperseded: false,
    isAsked: false,
    isPrivate: false,
  },
} as const satisfies Readonly<Record<string, EmailKind>>

export type EmailType = keyof typeof emailKinds

export const emailTypes = Object.keys(emailKinds) as readonly EmailType[]

/** Their recipients did not ask for them. */
export const unaskedTypes = emailTypes.filter((type) => !emailKinds[type].isAsked)
