/** The types of emails, as pages name them. */
import { type EmailType, emailKinds, emailTypes } from '../../domain/request/email-kinds.ts'

export const emailTypeNames = emailTypes.map((type) => [type, emailKinds[type].title] as const)

export const nameEmailType = (type: string): string =>
  Object.hasOwn(emailKinds, type) ? emailKinds[type as EmailType].title : type

/** The type that a form names; sign-in links unless it names one. */
export const readEmailType = (text: string | null): EmailType =>
  emailTypes.find((type) => type === text) ?? 'magic_link'
