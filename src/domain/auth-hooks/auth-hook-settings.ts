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
    /** Shown in invitations that name none. */
    readonly organisationName?: string
  }
}

/** In the place of the public address of the auth hooks listener, as long as nobody has set it. */
export const unknownAuthHooksUrl = 'https://YOUR-AUTH-HOOKS-ADDRESS'

/** Those of one system; empty if the app has none. */
export const systemSettings = (authHooks: AuthHookSettings, name: AuthHookName) => authHooks[name] ?? {}
