/**
 * Authentication emails as other software sends them over SMTP: their links, their parts and what stands
 * beside the link, from its templates. The words are ours.
 */

import { createHash } from 'node:crypto'
import MailComposer from 'nodemailer/lib/mail-composer/index.js'

export type AuthMail = {
  readonly system: string
  /** The kind that a rule must find. */
  readonly kind: string
  readonly link: string
  /** `LINK` stands for the link, and is escaped in HTML. */
  readonly text?: string
  readonly html?: string
  readonly headers?: Readonly<Record<string, string>>
}

const hex = (seed: string, length = 40) => createHash('sha512').update(seed).digest('hex').slice(0, length)
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
/** A JWT that lives for years. */
const jwt = (claims: object) =>
  `${encode({ alg: 'HS512', typ: 'JWT' })}.${encode({ exp: 4_000_000_000, ...claims })}.${hex('signature', 86)}`

const button = (words: string) =>
  `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"><style>a { color: #06c }</style></head>
<body><table role="presentation"><tr><td><p>${words}</p><p><a href="LINK" target="_blank">Continue</a></p>
<p>If the button does nothing, copy this: <a href="LINK">LINK</a></p></td></tr></table></body></html>`
const plain = (words: string) => `Hello,\n\n${words}\n\nLINK\n\nYou did not ask for this? Then do nothing.\n`

const keycloak = (typ: string, more = '&client_id=account-console&tab_id=hW3nQ0') =>
  `https://id.acme.test/realms/staff/login-actions/action-token?key=${jwt({ typ, nonce: hex(typ, 32) })}${more}`

/** Text and HTML, as most systems send them. */
const both = (system: string, kind: string, link: string, words: string): AuthMail => ({
  ...{ system, kind, link },
  text: plain(words),
  html: button(words),
})
const onlyText = (system: string, kind: string, link: string, text: string): AuthMail => ({ system, kind, link, text })
const onlyHtml = (system: string, kind: string, link: string, html: string): AuthMail => ({ system, kind, link, html })

const authelia = `https://auth.acme.test/reset-password/step2?token=${jwt({ action: 'ResetPassword' })}`
const gitHome = '<p>&copy; <a href="https://git.acme.test/">Acme Git</a></p>'

export const authMails: readonly AuthMail[] = [
  both('keycloak', 'reset', keycloak('reset-credentials'), 'Somebody wants to change the credentials of your account.'),
  both('keycloak', 'verification', keycloak('verify-email'), 'Somebody made an account with this address.'),
  both('keycloak', 'verification', keycloak('update-email'), 'Confirm the new address of your account.'),
  both('keycloak', 'verification', keycloak('idp-verify-account-via-email'), 'Link your account with Google.'),
  both('keycloak', 'actions', keycloak('execute-actions', ''), 'Your administrator asks you to update your account.'),
  both('keycloak', 'invitation', keycloak('ORGIVT', ''), 'You were invited to the organisation Acme.'),
  both(
    'keycloak',
    'invitation',
    `https://id.acme.test/auth/realms/staff/protocol/openid-connect/registrations?response_type=code&client_id=account&token=${jwt({ typ: 'ORGIVT' })}`,
    'You were invited to register with Acme.',
  ),
  onlyHtml(
    'authentik',
    'recovery',
    `https://sso.acme.test/if/flow/default-recovery-flow/?flow_token=${hex('authentik', 60)}`,
    `${button('You asked for a new password. This works for 30 minutes.')}<img src="cid:logo" alt="">`,
  ),
  onlyHtml(
    'authentik',
    'enrolment',
    `https://sso.acme.test/if/flow/default-enrollment-flow/?flow_token=${hex('enrol', 60)}`,
    button('Confirm your address to end the enrolment.'),
  ),
  both(
    'authentik',
    'recovery',
    `https://sso.acme.test/if/flow/staff-recovery/?flow_token=${hex('own', 60)}`,
    'Recover.',
  ),
  {
    ...both('authelia', 'reset', authelia, 'A password reset was asked for from 192.0.2.7.'),
    text: `Reset it:\n\nLINK\n\nRevoke it: https://auth.acme.test/revoke/reset-password?token=${jwt({ action: 'Revoke' })}\n`,
    html: `<p><a href="LINK">Reset</a> <a href="https://auth.acme.test/revoke/reset-password?token=${jwt({ action: 'Revoke' })}">Revoke</a></p>`,
  },
  both(
    'vaultwarden',
    'verification',
    `https://vault.acme.test/#/verify-email/?userId=8d2f0a52-77c1-4f0e-9d5b-0c1e2a3b4c5d&token=${jwt({ sub: 'verify' })}`,
    'Verify the address of your new account.',
  ),
  both(
    'vaultwarden',
    'verification',
    `https://vault.acme.test/#/finish-signup/?email=ada%40acme.test&fromEmail=true&token=${jwt({ sub: 'signup' })}`,
    'Finish your registration.',
  ),
  both(
    'vaultwarden',
    'invitation',
    `https://vault.acme.test/#/accept-organization/?organizationId=8d2f0a52&organizationUserId=77c1&email=ada%40acme.test&organizationName=Acme%20Ltd&token=${jwt({ sub: 'invite' })}`,
    'Join the organisation Acme Ltd.',
  ),
  both(
    'vaultwarden',
    'invitation',
    `https://vault.acme.test/#/accept-emergency/?id=1&name=Ada&email=ada%40acme.test&token=${jwt({ sub: 'emergency' })}`,
    'Become the emergency contact of Ada.',
  ),
  onlyHtml(
    'gitea',
    'activation',
    `https://git.acme.test/user/activate?code=${hex('activate', 64)}`,
    `<html><body><p>Activate within <b>3 hours</b>:</p><p><a href="LINK">LINK</a></p>${gitHome}</body></html>`,
  ),
  onlyHtml(
    'gitea',
    'activation',
    `https://git.acme.test/user/activate_email?code=${hex('email', 64)}&email=ada%40acme.test`,
    `<html><body><a href="LINK">LINK</a>${gitHome}</body></html>`,
  ),
  both('gitea', 'recovery', `https://git.acme.test/user/recover_account?code=${hex('recover', 64)}`, 'Recover it.'),
  both(
    'gitea',
    'recovery',
    `https://code.acme.test/forgejo/user/recover_account?code=${hex('forgejo', 64)}`,
    'Recover.',
  ),
  both(
    'devise',
    'reset',
    `https://gitlab.acme.test/users/password/edit?reset_password_token=${hex('gitlab', 20)}`,
    'Somebody, hopefully you, asked to reset the password of your GitLab account.',
  ),
  both(
    'devise',
    'confirmation',
    `https://gitlab.acme.test/users/confirmation?confirmation_token=${hex('c', 20)}`,
    'Hi.',
  ),
  both(
    'devise',
    'unlock',
    `https://gitlab.acme.test/users/unlock?unlock_token=${hex('u', 20)}`,
    'Your account is locked.',
  ),
  {
    ...both(
      'devise',
      'invitation',
      `https://gitlab.acme.test/-/invites/${hex('i', 20)}?invite_type=initial_email`,
      'Join.',
    ),
    text: `Accept: LINK\n\nDecline: https://gitlab.acme.test/-/invites/${hex('i', 20)}/decline\n`,
  },
  both(
    'devise',
    'reset',
    `https://social.acme.test/auth/password/edit?reset_password_token=${hex('m', 20)}`,
    'Mastodon.',
  ),
  both(
    'devise',
    'confirmation',
    `https://social.acme.test/auth/confirmation?confirmation_token=${hex('n', 20)}&redirect_to_app=true`,
    'You applied for an account on Mastodon.',
  ),
  both(
    'devise',
    'invitation',
    `https://app.acme.test/users/invitation/accept?invitation_token=${hex('devise', 20)}`,
    'Ada has invited you to Acme. You can accept it below.',
  ),
  both(
    'discourse',
    'reset',
    `https://forum.acme.test/u/password-reset/${hex('d1', 32)}`,
    'Somebody asked for a reset.',
  ),
  both(
    'discourse',
    'activation',
    `https://forum.acme.test/u/activate-account/${hex('d2', 32)}`,
    'Confirm your account.',
  ),
  both(
    'discourse',
    'activation',
    `https://forum.acme.test/u/confirm-new-email/${hex('d3', 32)}`,
    'Confirm this address.',
  ),
  both('discourse', 'sign_in', `https://forum.acme.test/session/email-login/${hex('d4', 32)}`, 'Here is your link.'),
  both('discourse', 'invitation', `https://forum.acme.test/invites/${hex('d5', 20)}`, 'Ada invites you to a topic.'),
  both(
    'nextcloud',
    'reset',
    `https://cloud.acme.test/lostpassword/reset/form/${hex('n', 21)}/ada`,
    'Choose another one.',
  ),
  both(
    'nextcloud',
    'reset',
    `https://acme.test/nextcloud/index.php/lostpassword/reset/form/${hex('o', 21)}/ada%40acme.test`,
    'Welcome! Set your password by this link.',
  ),
  onlyText(
    'wordpress',
    'reset',
    `https://www.acme.test/wp-login.php?login=ada&key=${hex('wp', 20)}&action=rp`,
    `Somebody asked for a password reset for this account:\r\n\r\nSite Name: Acme\r\n\r\nUsername: ada\r\n\r\nLINK\r\n\r\nThis request came from 192.0.2.7.\r\n`,
  ),
  onlyText(
    'wordpress',
    'reset',
    `https://www.acme.test/blog/wp-login.php?action=rp&key=${hex('wq', 20)}&login=ada&wp_lang=de_DE`,
    'Benutzername: ada\r\n\r\nUm ein Passwort festzulegen:\r\n\r\n<LINK>\r\n\r\nhttps://www.acme.test/blog/wp-login.php\r\n',
  ),
  onlyText(
    'wordpress',
    'activation',
    `https://www.acme.test/wp-activate.php?key=${hex('wa', 16)}`,
    'To activate your user, please click here:\n\nLINK\n\nAfter that, you get an email with your login.\n',
  ),
  {
    ...both(
      'ghost',
      'sign_in',
      `https://blog.acme.test/members/?token=${hex('g1', 32)}&action=signin&r=%2F`,
      'Sign in.',
    ),
    html: `${button('Welcome back to Acme!')}<p style="background:url('https://fonts.googleapis.com/css?family=Inter')">Sent by <a href="https://blog.acme.test">Acme</a>, by <a href="https://ghost.org">Ghost</a></p>`,
  },
  both(
    'ghost',
    'sign_up',
    `https://blog.acme.test/members/?token=${hex('g2', 32)}&action=signup`,
    'Confirm your sign-up.',
  ),
  both('ghost', 'sign_up', `https://blog.acme.test/members/?token=${hex('g3', 32)}&action=subscribe`, 'One more step.'),
  both('ghost', 'sign_up', `https://blog.acme.test/members/?token=${hex('g6', 32)}&action=signup-paid`, 'Welcome.'),
  both('ghost', 'sign_up', `https://blog.acme.test/members/?token=${hex('g7', 32)}&action=updateEmail`, 'Confirm.'),
  both('ghost', 'reset', `https://blog.acme.test/ghost/reset/${hex('g4', 60)}/`, 'You asked for a password reset.'),
  both('ghost', 'invitation', `https://blog.acme.test/ghost/signup/${hex('g5', 60)}/`, 'Ada invites you to the team.'),
  both(
    'grafana',
    'reset',
    `https://grafana.acme.test/user/password/reset?code=${hex('gr', 60)}`,
    'Hi ada, reset it here.',
  ),
  both(
    'grafana',
    'verification',
    `https://grafana.acme.test/signup/?email=ada%40acme.test&code=${hex('gs', 20)}`,
    'Hi!',
  ),
  both('grafana', 'invitation', `https://grafana.acme.test/invite/${hex('gi', 30)}`, 'Ada has invited you to Grafana.'),
  both(
    'directus',
    'reset',
    `https://cms.acme.test/admin/reset-password?token=${jwt({ scope: 'password-reset' })}`,
    'Hi.',
  ),
  both(
    'directus',
    'invitation',
    `https://cms.acme.test/admin/accept-invite?token=${jwt({ scope: 'invite' })}`,
    'Join.',
  ),
  both(
    'directus',
    'registration',
    `https://cms.acme.test/users/register/verify-email?token=${jwt({ scope: 'pending-registration' })}`,
    'Verify your registration.',
  ),
  onlyHtml(
    'strapi',
    'reset',
    `https://cms.acme.test/admin/auth/reset-password?code=${hex('s1', 40)}`,
    '<p>We heard that you lost your password.</p><p>Use this link:</p><p>LINK</p><p>Thanks.</p>',
  ),
  onlyHtml(
    'strapi',
    'confirmation',
    `https://cms.acme.test/api/auth/email-confirmation?confirmation=${hex('s2', 40)}`,
    '<p>Thank you for registering!</p><p>You have to confirm your address.</p><p>LINK</p>',
  ),
  both(
    'strapi',
    'invitation',
    `https://cms.acme.test/admin/auth/register?registrationToken=${hex('s3', 40)}`,
    'Join us.',
  ),
  onlyText(
    'django',
    'reset',
    `https://app.acme.test/accounts/reset/MQ/cz4k1p-${hex('dj', 32)}/`,
    "\nYou get this email because you asked for a password reset for your account at app.acme.test.\n\nPlease go to the following page:\n\n\nLINK\n\n\nYour username, in case you've forgotten: ada\n\n",
  ),
  both(
    'django',
    'reset',
    `https://app.acme.test/accounts/password/reset/key/2-cz4k1p-${hex('al', 32)}/`,
    'From allauth.',
  ),
  both(
    'django',
    'confirmation',
    `https://app.acme.test/accounts/confirm-email/Mg:1tZ8:${hex('cf', 43)}/`,
    'Ada, confirm.',
  ),
]

/** Links that stand in every message of a system. */
const footers: Readonly<Record<string, string>> = {
  authelia: 'https://www.authelia.com',
  authentik: 'https://goauthentik.io?utm_source=email http://schema.org/EmailMessage',
  nextcloud: 'https://nextcloud.com/install/#install-clients',
  vaultwarden: 'https://github.com/dani-garcia/vaultwarden',
}

const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')

export type Form = { readonly textEncoding?: 'quoted-printable' | 'base64' }

/** The message, as a mail library of today writes it. */
export const compose = (
  { headers = {}, html, link, system, text }: AuthMail,
  { textEncoding = 'quoted-printable' }: Form = {},
): Promise<Buffer> =>
  new MailComposer({
    from: `${system} <noreply@acme.test>`,
    to: 'ada@acme.test',
    subject: 'Your account',
    headers,
    textEncoding,
    ...(text !== undefined && { text: `${text.replaceAll('LINK', link)}\n${footers[system] ?? ''}` }),
    ...(html !== undefined && { html: `${html.replaceAll('LINK', escapeHtml(link))}<p>${footers[system] ?? ''}</p>` }),
  })
    .compile()
    .build()
