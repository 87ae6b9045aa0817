import { DatabaseSync } from 'node:sqlite'
import { Postern } from '@postern/client'
import { betterAuthEmail } from '@postern/client/better-auth'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { nextCookies } from 'better-auth/next-js'
import { magicLink } from 'better-auth/plugins'

const postern = new Postern()
const email = betterAuthEmail({ postern })

const options = {
  appName: 'My App',
  database: new DatabaseSync('auth.db'),
  emailAndPassword: { enabled: true },
  emailVerification: { sendOnSignUp: true },
  plugins: [email.plugin, magicLink({ sendMagicLink: email.sendMagicLink }), nextCookies()],
} satisfies BetterAuthOptions

export const auth = betterAuth(options)

/** Run once, when the server starts: a missing variable stops it here, not at the first sign-in. */
export async function prepare() {
  postern.check()
  await (await getMigrations(options)).runMigrations()
}
