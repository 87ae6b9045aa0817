/**
 * Codes of Better Auth's emailOTP plugin: alone, with a link to the page where they are typed, or beside a
 * magic link.
 */
import { type Background, report, tell } from './background.ts'
import type { Email, EmailType } from './email.ts'
import { checkPage, checkPages, linkTo } from './link.ts'
import { isCode } from './one-time-code.ts'
import { PosternError } from './postern-error.ts'

export type OneTimeCodeEmail = {
  readonly email: string
  readonly otp: string
  readonly type: 'sign-in' | 'email-verification' | 'forget-password' | 'change-email'
}

export type AuthPlugin = { readonly id: string; readonly options?: unknown; readonly endpoints?: unknown }

const emailTypes: { readonly [type in OneTimeCodeEmail['type']]: Exclude<EmailType, 'organisation_invite'> } = {
  'sign-in': 'magic_link',
  'email-verification': 'email_verification',
  'forget-password': 'password_reset',
  'change-email': 'email_verification',
}

/** Better Auth's default in seconds. */
const usualLifeS = 300

export const findPlugin = (plugins: readonly AuthPlugin[]): AuthPlugin | undefined =>
  plugins.find(({ id }) => id === 'email-otp')

/** One page, or one for each kind of code. */
export type CodePages = string | { readonly [type in OneTimeCodeEmail['type']]?: string | undefined }

/** @throws {PosternError} `invalid_config` if one is not a page */
export function checkCodePages(pages: CodePages | undefined): void {
  if (typeof pages === 'string') checkPage('codePage', pages)
  else checkPages('codePage', pages ?? {})
}

export const toEmailType = (type: OneTimeCodeEmail['type']) => emailTypes[type]

/** The email of a code. @throws {PosternError} `invalid_config` without a page to enter it in */
export function toCodeEmail(
  { email, otp, type }: OneTimeCodeEmail,
  pages: CodePages | undefined,
  plugins: readonly AuthPlugin[],
): Email {
  const emailType = toEmailType(type)
  if (emailType === undefined)
    throw new PosternError('unsupported_email', 'Postern has no email for this code of Better Auth.')
  const page = typeof pages === 'string' ? pages : pages?.[type]
  if (page === undefined)
    throw new PosternError('invalid_config', 'Set codePage to the page where people enter the code.')
  return { to: email, type: emailType, url: linkTo(page, otp), code: otp, expiresAt: codeExpiry(plugins) }
}

const codeExpiry = (plugins: readonly AuthPlugin[]): Date => {
  const { expiresIn } = (findPlugin(plugins)?.options ?? {}) as { expiresIn?: number }
  return new Date(Date.now() + (expiresIn || usualLifeS) * 1000)
}

type MakeCode = (call: {
  readonly body: { readonly email: string; readonly type: 'sign-in' }
  readonly context: unknown
}) => Promise<unknown>

/**
 * A new code for a sign-in, which the emailOTP plugin takes as one of its own.
 * @param context that of the endpoint that sends the magic link
 */
async function makeSignInCode(
  email: string,
  plugins: readonly AuthPlugin[],
  context: unknown,
): Promise<{ code: string; expiresAt: Date }> {
  const endpoints = (findPlugin(plugins)?.endpoints ?? {}) as { createVerificationOTP?: MakeCode }
  if (endpoints.createVerificationOTP === undefined)
    throw new PosternError('invalid_config', 'code: true needs the emailOTP plugin of Better Auth.')
  const expiresAt = codeExpiry(plugins)
  const code = String(await endpoints.createVerificationOTP({ body: { email, type: 'sign-in' }, context }))
  if (!isCode(code))
    throw new PosternError(
      'invalid_config',
      'The codes of emailOTP are too long for an email: set otpLength to 4 to 10.',
    )
  return { code, expiresAt }
}

/** A code for a magic link; null if none can be made: the link works alone, and `onError` hears why. */
export async function trySignInCode(
  { onError = report }: Background,
  email: string,
  { plugins, context }: { readonly plugins: readonly AuthPlugin[]; readonly context?: unknown },
) {
  try {
    return await makeSignInCode(email, plugins, context)
  } catch (error) {
    await tell(onError, error)
    return null
  }
}

/** An email that consists of its code is useless without it. */
export function requireShown({ codeIgnored }: { readonly codeIgnored: boolean }): void {
  if (codeIgnored)
    throw new PosternError(
      'code_not_shown',
      'The email was sent without its code, because the app does not allow codes: postern app update APP --allow-codes.',
    )
}
