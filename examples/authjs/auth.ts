import { UnstorageAdapter } from '@auth/unstorage-adapter'
import { Postern } from '@postern/client'
import { posternProvider } from '@postern/client/auth-js'
import NextAuth from 'next-auth'
import { createStorage } from 'unstorage'
import fsDriver from 'unstorage/drivers/fs'

const postern = new Postern()
postern.check() // a missing variable stops the app here, not at the first sign-in

export const { handlers, auth, signOut } = NextAuth({
  // Files, for the sample: use the adapter of your own database.
  adapter: UnstorageAdapter(createStorage({ driver: fsDriver({ base: '.users' }) })),
  providers: [posternProvider({ postern, confirmUrl: 'http://localhost:3000/sign-in/confirm' })],
})
