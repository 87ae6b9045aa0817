/** The types of emails, as pages name them. */
import { type EmailType, emailTypes } from '../../domain/request/email-request.ts'

const names: Readonly<Record<EmailType, string>> = {
  magic_link: 'Sign-in link',
  email_verification: 'Verification',
  password_reset: 'Password reset',
  organisation_invite: 'Invitation',
}

export const emailTypeNames = emailTypes.map((type) => [type, names[type]] as const)

export const nameEmailType = (type: string): string =>
  Object.hasOwn(names, type) ? names[type as EmailType] : type

/** The type that a form names; sign-in links unless it names one. */
export const readEmailType = (text: string | null): EmailType =>
  emailTypes.find((type) => type === text) ?? 'magic_link'
