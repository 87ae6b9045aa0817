/**
 * own-auth: an `EmailProvider` that replaces its managed one and adds the organisation's name (needed
 * by invitations), links with a second parameter (from `redirectUrl`), retries and time limits.
 */
import { type Background, dispatch } from './background.ts'
import type { Email, EmailType, Sender } from './email.ts'
import { joinToken, linkTo, otherParameters } from './link.ts'
import { type FindLocale, findLocale } from './locale.ts'
import { PosternError } from './postern-error.ts'

export { splitToken } from './link.ts'

/** A message of own-auth 0.3. */
export type OwnAuthMessage = {
  readonly to: string
  readonly type: string
  readonly token: string
  readonly url: string
  readonly expiresAt: Date
}

type MaybePromise<T> = T | Promise<T>

export type OwnAuthEmailOptions = Background & {
  readonly postern: Sender
  /** For invitations. A function can look it up, for instance by the invitation's token. */
  readonly organisationName?: string | ((message: OwnAuthMessage) => MaybePromise<string>) | undefined
  readonly inviterName?: ((message: OwnAuthMessage) => MaybePromise<string | undefined>) | undefined
  /**
   * The reader's language, for instance looked up by `to`. Without it, emails are in the app's own
   * language.
   */
  readonly locale?: FindLocale<[message: OwnAuthMessage]>
  /**
   * The link's other parameters: `drop` (default) omits them; `in-token` puts them into the token,
   * for `splitToken`.
   */
  readonly parameters?: 'drop' | 'in-token' | undefined
}

const types: readonly string[] = [
  'magic_link',
  'email_verification',
  'password_reset',
  'organisation_invite',
] satisfies EmailType[]

/** The provider, for `email: ownAuthEmail({ postern })`. */
export function ownAuthEmail(options: OwnAuthEmailOptions) {
  const { postern, organisationName, inviterName, parameters = 'drop' } = options

  async function readEmail(message: OwnAuthMessage): Promise<Email> {
    const { to, type, expiresAt } = message
    const language = await findLocale(options, message)
    const common = { to, url: chooseLink(message, parameters), expiresAt, ...language }
    if (!types.includes(type)) {
      throw new PosternError('unsupported_email', 'Postern has no type for this email; send it by other means.')
    }
    if (type !== 'organisation_invite') return { ...common, type: type as Exclude<EmailType, 'organisation_invite'> }
    if (organisationName === undefined) {
      throw new PosternError('invalid_config', 'Give organisationName: an invitation shows it.')
    }
    const name = typeof organisationName === 'string' ? organisationName : await organisationName(message)
    return { ...common, type, organisationName: name, inviterName: await inviterName?.(message) }
  }

  return {
    async send(message: OwnAuthMessage): Promise<void> {
      await dispatch(
        readEmail(message).then((email) => postern.send(email)),
        options,
      )
    },
  }
}

/** own-auth's link with `token` as its only parameter. */
function chooseLink({ url, token }: OwnAuthMessage, parameters: 'drop' | 'in-token'): string {
  const [, page = '', query = '', fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? []
  return linkTo(page + fragment, parameters === 'drop' ? token : joinToken(token, otherParameters(query)))
}
