/**
 * Better Auth with its four emails sent by Postern. Copy this file into an app; the rest of the folder
 * is only the example.
 */
import { DatabaseSync } from 'node:sqlite'
import type { Postern } from '@postern/client'
import { betterAuthEmail } from '@postern/client/better-auth'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { magicLink, organization } from 'better-auth/plugins'

export type AuthSettings = {
  /** The app's origin, such as http://localhost:3000. */
  readonly origin: string
  readonly databasePath: string
  readonly secret: string
  readonly postern: Postern
}

export async function startAuth({ origin, databasePath, secret, postern }: AuthSettings) {
  const email = betterAuthEmail({
    postern,
    pages: { organisation_invite: `${origin}/accept-invitation` },
  })
  const options = {
    appName: 'Example',
    baseURL: origin,
    secret,
    database: new DatabaseSync(databasePath),
    emailAndPassword: { enabled: true },
    emailVerification: { sendOnSignUp: true },
    plugins: [
      email.plugin,
      magicLink({ sendMagicLink: email.sendMagicLink }),
      organization({ sendInvitationEmail: email.sendInvitationEmail }),
    ],
  } satisfies BetterAuthOptions
  await (await getMigrations(options)).runMigrations()
  return betterAuth(options)
}

export type ExampleAuth = Awaited<ReturnType<typeof startAuth>>
