/** The types of emails, as pages name them. */
import type { EmailType } from '../domain/request/email-request.ts'

export const emailTypeNames = [
  ['magic_link', 'Sign-in link'],
  ['email_verification', 'Verification'],
  ['password_reset', 'Password reset'],
  ['organisation_invite', 'Invitation'],
] as const satisfies readonly (readonly [EmailType, string])[]

export const nameOfType = (type: string): string =>
  emailTypeNames.find(([each]) => each === type)?.[1] ?? type

/** The type that a form names; sign-in links unless it names one. */
export const typeOf = (text: string | null): EmailType =>
  emailTypeNames.find(([type]) => type === text)?.[0] ?? 'magic_link'
