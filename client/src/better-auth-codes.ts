/**
 * Codes of Better Auth's emailOTP plugin: alone, with a link to the page where they are typed, or beside a
 * magic link.
 */
import type { Email, EmailType } from './email.ts'
import { checkPage, linkTo } from './link.ts'
import { PosternError } from './postern-error.ts'

export type OneTimeCodeEmail = {
  readonly email: string
  readonly otp: string
  readonly type: 'sign-in' | 'email-verification' | 'forget-password' | 'change-email'
}

type Plugin = { readonly id: string; readonly options?: unknown; readonly endpoints?: unknown }

const emailTypes: { readonly [type in OneTimeCodeEmail['type']]: Exclude<EmailType, 'organisation_invite'> } =
  {
    'sign-in': 'magic_link',
    'email-verification': 'email_verification',
    'forget-password': 'password_reset',
    'change-email': 'email_verification',
  }

/** Better Auth's default in seconds. */
const usualLifeS = 300

const findPlugin = (plugins: readonly Plugin[]): Plugin | undefined =>
  plugins.find(({ id }) => id === 'email-otp')

/** The email of a code. @throws {PosternError} `invalid_config` without a page to type it in */
export function toCodeEmail(
  { email, otp, type }: OneTimeCodeEmail,
  codePage: string | undefined,
  plugins: readonly Plugin[],
): Email {
  if (codePage === undefined)
    throw new PosternError('invalid_config', 'Set codePage to the page where people enter the code.')
  checkPage('codePage', codePage)
  const emailType = emailTypes[type]
  if (emailType === undefined)
    throw new PosternError('unsupported_email', 'Postern has no email for this code of Better Auth.')
  const expiresAt = codeExpiry(plugins)
  return { to: email, type: emailType, url: linkTo(codePage, otp), code: otp, expiresAt }
}

const codeExpiry = (plugins: readonly Plugin[]): Date => {
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
export async function makeSignInCode(
  email: string,
  plugins: readonly Plugin[],
  context: unknown,
): Promise<{ code: string; expiresAt: Date }> {
  const endpoints = (findPlugin(plugins)?.endpoints ?? {}) as { createVerificationOTP?: MakeCode }
  if (endpoints.createVerificationOTP === undefined)
    throw new PosternError('invalid_config', 'code: true needs the emailOTP plugin of Better Auth.')
  const expiresAt = codeExpiry(plugins)
  const code = await endpoints.createVerificationOTP({ body: { email, type: 'sign-in' }, context })
  return { code: String(code), expiresAt }
}

/** An email that consists of its code is useless without it. */
export function requireShown({ codeIgnored }: { readonly codeIgnored: boolean }): void {
  if (codeIgnored)
    throw new PosternError(
      'code_not_shown',
      'The email was sent without its code, because the app does not allow codes: postern app update APP --allow-codes.',
    )
}
