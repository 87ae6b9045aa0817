/** The example's server: pages and forms around Better Auth, which answers below /api/auth. */
import { type Context, Hono } from 'hono'
import { csrf } from 'hono/csrf'
import { secureHeaders } from 'hono/secure-headers'
import type { ExampleAuth } from './auth.ts'
import { invitationPage, layout, memberPage, resetPage, signInToAccept, strangerPage } from './pages.ts'

export function newApp(auth: ExampleAuth, inboxUrl: string): Hono {
  const app = new Hono()
  // Links to this app contain tokens: no Referer to other sites.
  app.use(secureHeaders({ referrerPolicy: 'same-origin' }), csrf())
  app.on(['GET', 'POST'], '/api/auth/*', (c) => auth.handler(c.req.raw))

  app.get('/', async (c) => {
    const session = await auth.api.getSession({ headers: c.req.raw.headers })
    const notice = c.req.query('notice') ?? failureOf(c)
    if (session === null) return c.html(layout('Example', strangerPage(inboxUrl), notice))
    const organisations = await auth.api.listOrganizations({ headers: c.req.raw.headers })
    return c.html(layout('Example', memberPage({ ...session.user, organisations }, inboxUrl), notice))
  })
  app.get('/reset-password', (c) => {
    const failure = failureOf(c)
    if (failure !== undefined) return back(c, failure)
    return c.html(layout('New password', resetPage(c.req.query('token') ?? '')))
  })
  app.get('/accept-invitation', async (c) => {
    const id = c.req.query('token') ?? ''
    const { headers } = c.req.raw
    if ((await auth.api.getSession({ headers })) === null) return c.html(layout('Invitation', signInToAccept(id)))
    const invitation = await auth.api.getInvitation({ headers, query: { id } })
    return c.html(layout('Invitation', invitationPage(invitation.organizationName, id)))
  })
  addForms(app, auth)
  app.onError((error, c) => {
    // Errors of Better Auth are shown; from status 500 up they are logged.
    const status = 'statusCode' in error ? Number(error.statusCode) : 500
    if (status >= 500) console.error(error)
    const text = status >= 500 ? 'Something went wrong. Try again in a moment.' : error.message
    return c.redirect(`/?notice=${encodeURIComponent(text)}`, 303)
  })
  return app
}

/** Better Auth redirects used and expired links to the callback URL with `error`. */
const failureOf = (c: Context): string | undefined =>
  c.req.query('error') && 'This link has been used or has expired. Ask for a new one.'

/** A form's fields, as text. */
async function fieldsOf(c: Context): Promise<(name: string) => string> {
  const form = await c.req.formData()
  return (name) => String(form.get(name) ?? '')
}

/** Redirects to the start page with a notice and the cookies that Better Auth set. */
function back(c: Context, notice: string, cookies: Headers = new Headers()): Response {
  for (const cookie of cookies.getSetCookie()) c.header('set-cookie', cookie, { append: true })
  return c.redirect(`/?notice=${encodeURIComponent(notice)}`, 303)
}

function addForms(app: Hono, auth: ExampleAuth): void {
  const { api } = auth
  const returnHeaders = true
  app.post('/sign-up', async (c) => {
    const field = await fieldsOf(c)
    const body = { name: field('name'), email: field('email'), password: field('password'), callbackURL: '/' }
    const { headers } = await api.signUpEmail({ body, returnHeaders })
    return back(c, 'Welcome. Look into the inbox to verify your address.', headers)
  })
  app.post('/sign-in', async (c) => {
    const field = await fieldsOf(c)
    const body = { email: field('email'), password: field('password') }
    const { headers } = await api.signInEmail({ body, returnHeaders })
    return back(c, 'You are signed in.', headers)
  })
  app.post('/magic-link', async (c) => {
    const field = await fieldsOf(c)
    const body = { email: field('email'), callbackURL: field('next') || '/' }
    await api.signInMagicLink({ body, headers: c.req.raw.headers })
    return back(c, 'A link is on its way.')
  })
  app.post('/forgot-password', async (c) => {
    const field = await fieldsOf(c)
    await api.requestPasswordReset({ body: { email: field('email'), redirectTo: '/reset-password' } })
    return back(c, 'If there is an account with this address, a link is on its way.')
  })
  app.post('/reset-password', async (c) => {
    const field = await fieldsOf(c)
    await api.resetPassword({ body: { token: field('token'), newPassword: field('password') } })
    return back(c, 'Your password is changed.')
  })
  app.post('/sign-out', async (c) => {
    const { headers } = await api.signOut({ headers: c.req.raw.headers, returnHeaders })
    return back(c, 'You are signed out.', headers)
  })
  app.post('/organisations', async (c) => {
    const field = await fieldsOf(c)
    const body = { name: field('name'), slug: crypto.randomUUID() }
    await api.createOrganization({ body, headers: c.req.raw.headers })
    return back(c, `${body.name} is there. Invite somebody.`)
  })
  app.post('/invite', async (c) => {
    const field = await fieldsOf(c)
    const body = { email: field('email'), organizationId: field('organizationId'), role: 'member' as const }
    await api.createInvitation({ body, headers: c.req.raw.headers })
    return back(c, 'The invitation is on its way.')
  })
  app.post('/accept-invitation', async (c) => {
    const field = await fieldsOf(c)
    await api.acceptInvitation({ body: { invitationId: field('id') }, headers: c.req.raw.headers })
    return back(c, 'You have joined.')
  })
}
