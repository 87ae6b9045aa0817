import { auth, signOut } from '@/auth'

export default async function Home() {
  const session = await auth()
  if (!session)
    return (
      <main>
        <h1>My App</h1>
        <a href="/api/auth/signin">Sign in</a>
      </main>
    )
  async function leave() {
    'use server'
    await signOut()
  }
  return (
    <main>
      <h1>Hello, {session.user?.email}</h1>
      <form action={leave}>
        <button type="submit">Sign out</button>
      </form>
    </main>
  )
}
