/** The settings of an app for the auth servers that post to it, by the names in `auth-hooks.ts`. */
export type AuthHookName = string

export type AuthHookSettings = {
  readonly [system: AuthHookName]: {
    /** Where the system's own links lead, if its messages do not say it. */
    readonly verifyUrl?: string
    /** Pages of the app by the kind of a message; `default` for the others. */
    readonly pages?: Readonly<Record<string, string>>
    /** The life of a link or code by the kind of its message; `default` for the others. */
    readonly lifeSeconds?: Readonly<Record<string, number>>
    /** For a system that sends over SMTP: the type of an email by a rule for its link, or `ignored`. */
    readonly rules?: Readonly<Record<string, string>>
    /** Hosts of links in its messages that say nothing, such as those of a logo; `*.` for all below. */
    readonly ignoredHosts?: readonly string[]
    /** Shown in invitations that name none. */
    readonly organisationName?: string
  }
}

/** In the place of the public address of the auth hooks listener, as long as nobody has set it. */
export const unknownAuthHooksUrl = 'https://YOUR-AUTH-HOOKS-ADDRESS'

/** The same for the submission listener. */
export const unknownSubmissionUrl = 'smtp://YOUR-SMTP-ADDRESS'

/** Those of one system; empty if the app has none. */
export const systemSettings = (authHooks: AuthHookSettings, name: AuthHookName) => authHooks[name] ?? {}
