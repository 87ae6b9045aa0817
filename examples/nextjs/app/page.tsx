'use client'

import { magicLinkClient } from 'better-auth/client/plugins'
import { createAuthClient } from 'better-auth/react'
import { type FormEvent, useState } from 'react'

const authClient = createAuthClient({ plugins: [magicLinkClient()] })

export default function Home() {
  const { data: session } = authClient.useSession()
  const [message, setMessage] = useState('')

  async function signIn(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const email = String(new FormData(event.currentTarget).get('email'))
    const { error } = await authClient.signIn.magicLink({ email, callbackURL: '/' })
    setMessage(error ? 'No email was sent. Try again later.' : 'Look into your inbox.')
  }

  if (session)
    return (
      <main className="mx-auto max-w-sm space-y-4 p-8">
        <h1>Hello, {session.user.email}</h1>
        <button type="button" className="rounded border p-2" onClick={() => authClient.signOut()}>
          Sign out
        </button>
      </main>
    )
  return (
    <main className="mx-auto max-w-sm space-y-4 p-8">
      <h1>My App</h1>
      <form onSubmit={signIn} className="space-y-4">
        <label>
          Email <input name="email" type="email" required className="rounded border p-2" />
        </label>
        <button type="submit" className="rounded border p-2">
          Email me a link
        </button>
      </form>
      <p>{message}</p>
    </main>
  )
}
