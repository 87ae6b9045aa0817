/**
 * The contract of an auth server that posts its mail to a URL, or sends it over SMTP: how it proves itself,
 * what it says, and what it reads of an answer. A system knows no app and no clock; limits are the intake's.
 */
import type { Parsed } from '../parsed.ts'
import type { Purpose } from '../request/email-content.ts'
import type { EmailType } from '../request/email-kinds.ts'
import type { RefusalCode } from '../request/rejection.ts'
import type { SignedCall } from '../signatures.ts'
import type { AuthHookName, AuthHookSettings } from './auth-hook-settings.ts'

/**
 * The email of a message, by the system's own name for it. A notice (a password was changed) is answered
 * as taken and not sent. `lifeSeconds` is the usual life of its link or code; null if the message says it.
 */
export type AuthHookKind =
  | 'notice'
  | { readonly type: EmailType; readonly purpose?: Purpose; readonly lifeSeconds: number | null }

/** One email of a call. */
export type AuthHookMessage = {
  /** The system's own name for it: a key of `kinds`. */
  readonly kind: string
  /** Replaces the purpose of its kind. */
  readonly purpose?: Purpose
  /** Empty in a notice that has no address. */
  readonly to: string
  readonly code?: string
  /** Carried to a page of the app; without one, the code is. */
  readonly token?: string
  /** The system's own link. It may have any parameters. */
  readonly original?: string
  /** The system's own link, if `token` is its one parameter: the email carries it as it is. */
  readonly link?: string
  /** The rule that matched the system's own link, which may have its secret in the path. */
  readonly rule?: string
  /** When the link expires, by the link itself, in milliseconds since 1970. */
  readonly notAfter?: number
  /** Where the system's own link redirects in the end, as the system sent it; for `original`. */
  readonly redirectTo?: string
  readonly lifeSeconds?: number
  readonly organisationName?: string
  readonly inviterName?: string
  readonly locale?: string
  /** The same for each repeat of a message and for no other; null if the system repeats none. */
  readonly once: string | null
}

type AuthHookAuth =
  /** SMTP AUTH: the app's slug, and `psh_…`. */
  | { readonly kind: 'login' }
  /** `Authorization: Bearer psh_…`. */
  | { readonly kind: 'bearer' }
  /** A signature over the raw body. */
  | {
      readonly kind: 'signed'
      readonly verify: (call: SignedCall & { readonly secret: string }) => boolean
      /** Null if the system makes its secrets, and they are pasted. */
      readonly makeSecret: (() => string) | null
      /** Says what is wrong with a secret; null if nothing is. */
      readonly checkSecret: (secret: string) => string | null
    }

/** The outcome of a call. `queued` also stands for repeats and notices. */
export type AuthHookResult =
  | { readonly kind: 'queued' }
  | {
      readonly kind: 'refused'
      readonly code: RefusalCode
      readonly status: number
      readonly requestId: string
    }

export type AuthHookAnswer = { readonly status: number; readonly body: object }

/** Where a step is taken, if not at the auth server; `instead` is another way for the steps before it. */
export const stepPlaces = ['postern', 'instead'] as const

/** A step of the instructions: a sentence, and a block to copy. */
export type Step = { readonly text: string; readonly block?: string; readonly place?: (typeof stepPlaces)[number] }

export type SystemSettings = NonNullable<AuthHookSettings[AuthHookName]>

/** The app that a body is read for. */
type HookedApp = { readonly slug: string; readonly settings: SystemSettings }

/** The address that it sends to, and the app: its slug and sender. `secret` is null once it is not shown. */
export type SetUpPlace = {
  readonly url: string
  readonly slug: string
  readonly from: string
  readonly secret: string | null
}

export type AuthHook = {
  readonly name: AuthHookName
  readonly title: string
  /** The version that its requests follow, for the documents. */
  readonly follows: string
  readonly auth: AuthHookAuth
  readonly kinds: Readonly<Record<string, AuthHookKind>>
  /** The settings that it uses. */
  readonly takes: readonly (keyof SystemSettings)[]
  /**
   * The messages of a body. An issue names a field of the system's own, never a value; the code
   * `unknown_kind` is for a message that `kinds` does not have.
   */
  readonly read: (body: unknown, app: HookedApp) => Parsed<readonly AuthHookMessage[]>
  /** The system's own link of a message that does not carry it; null if a setting is missing. */
  readonly original?: (message: AuthHookMessage, settings: SystemSettings) => string | null
  /** A body with one message of a kind, as the system sends it. */
  readonly sample: (kind: string) => object
  /** The kinds that have a sample; all unless given. */
  readonly samples?: readonly string[]
  /** Instructions in plain text. */
  readonly setUp: (place: SetUpPlace) => readonly Step[]
}

/** One that posts to a URL. */
export type PostingHook = Omit<AuthHook, 'auth' | 'read' | 'setUp'> & {
  readonly auth: Exclude<AuthHookAuth, { readonly kind: 'login' }>
  readonly bodyBytesMax: number
  readonly read: (body: unknown) => Parsed<readonly AuthHookMessage[]>
  readonly setUp: (place: Pick<SetUpPlace, 'url' | 'secret'>) => readonly Step[]
  readonly answer: (result: AuthHookResult) => AuthHookAnswer
}
