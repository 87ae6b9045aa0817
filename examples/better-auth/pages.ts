/** The example's pages: plain HTML that works without scripts. */
import { html } from 'hono/html'

type Html = ReturnType<typeof html>

const style = `:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0;padding:32px 16px;font:16px/1.5 system-ui,sans-serif;background:light-dark(#f3f4f6,#111317);color:light-dark(#1b1f24,#f1f3f5)}
main{max-width:480px;margin:0 auto}
section{margin:0 0 16px;padding:24px;border-radius:12px;background:light-dark(#fff,#1c1f24);border:1px solid light-dark(#e2e5ea,#343a43)}
h1{margin:0 0 16px;font-size:24px}
h2{margin:0 0 12px;font-size:18px}
p{margin:0 0 12px;overflow-wrap:anywhere}
label{display:block;margin:0 0 12px}
input{display:block;width:100%;margin-top:4px;padding:10px;border:1px solid light-dark(#8a929e,#6b7480);border-radius:8px;font:inherit;background:transparent;color:inherit}
button{padding:10px 16px;border:0;border-radius:8px;font:inherit;font-weight:600;background:light-dark(#1b1f24,#f1f3f5);color:light-dark(#fff,#1b1f24);cursor:pointer}
:focus-visible{outline:3px solid #60a5fa;outline-offset:2px}
a{color:inherit}
[role=status]{padding:12px 16px;border-radius:8px;background:light-dark(#e0ecff,#1e3352)}
.soft{color:light-dark(#4b5563,#b4bcc8);font-size:14px}`

export const layout = (title: string, body: Html | Html[], notice?: string) => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body><main>
${notice ? html`<p role="status">${notice}</p>` : ''}
${body}
</main></body>
</html>
`

type Field = {
  readonly name: string
  readonly label: string
  readonly type?: string
  readonly value?: string
}

/** One form of one column: fields, hidden values, a button. */
const form = (action: string, button: string, fields: Field[] = [], hidden: Record<string, string> = {}) => html`
<form method="post" action="${action}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map(
  ({ name, label, type = 'text', value = '' }) => html`
<label>${label}<input name="${name}" type="${type}" value="${value}" required autocomplete="${autocompleteOf[type] ?? 'off'}"></label>`,
)}
<button>${button}</button>
</form>`

const autocompleteOf: Record<string, string> = { email: 'email', password: 'current-password' }
const email: Field = { name: 'email', label: 'Email address', type: 'email' }
const password: Field = { name: 'password', label: 'Password (8 characters and more)', type: 'password' }

const section = (title: string, body: Html) => html`<section><h2>${title}</h2>${body}</section>`

export const strangerPage = (inboxUrl: string): Html[] => [
  html`<h1>Example</h1>
<p class="soft">Every email of this app goes through Postern and waits in <a href="${inboxUrl}">its inbox</a>.</p>`,
  section('Sign up', form('/sign-up', 'Sign up', [{ name: 'name', label: 'Name' }, email, password])),
  section('Sign in by link', form('/magic-link', 'Email me a link', [email])),
  section('Sign in by password', form('/sign-in', 'Sign in', [email, password])),
  section('Forgot your password?', form('/forgot-password', 'Email me a link', [email])),
]

export type Member = {
  readonly name: string
  readonly email: string
  readonly emailVerified: boolean
  readonly organisations: readonly { readonly id: string; readonly name: string }[]
}

export const memberPage = ({ name, email: address, emailVerified, organisations }: Member, inboxUrl: string) => [
  html`<h1>Hello, ${name || address}</h1>
<p>${address} is ${emailVerified ? 'verified' : 'not verified yet'}.</p>
<p class="soft">Emails wait in <a href="${inboxUrl}">Postern’s inbox</a>.</p>`,
  ...organisations.map(({ id, name: organisation }) =>
    section(organisation, form('/invite', 'Invite', [email], { organizationId: id })),
  ),
  section('New organisation', form('/organisations', 'Create', [{ name: 'name', label: 'Name' }])),
  section('Leave', form('/sign-out', 'Sign out')),
]

export const resetPage = (token: string) => [
  section('Choose a new password', form('/reset-password', 'Save', [password], { token })),
]

export const invitationPage = (organisation: string, id: string) => [
  section(`Join ${organisation}`, form('/accept-invitation', 'Accept the invitation', [], { id })),
]

/** An invitation is bound to an address: its recipient signs in first, then returns. */
export const signInToAccept = (id: string) => [
  section(
    'Sign in to see your invitation',
    form('/magic-link', 'Email me a link', [email], {
      next: `/accept-invitation?token=${encodeURIComponent(id)}`,
    }),
  ),
]
