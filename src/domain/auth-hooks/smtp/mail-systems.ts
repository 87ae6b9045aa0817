/**
 * The systems that send over SMTP, with the links of their emails: the only place that knows them. Facts are
 * from their sources and documents.
 *
 * A line of `emails` has its name, its type, the life of its link, the path of a sample, and its rules
 * (`link-rule.ts`). `HEX` and `JWT` are random in a real link, `JWT(typ)` has this claim. In `configuration`,
 * names in braces are
 * replaced, and of `{a|b|c}` one is taken: without TLS, with STARTTLS, with implicit TLS.
 */
import type { AuthHook } from '../auth-hook.ts'
import { type MailSystem, newMailSystem } from './mail-system.ts'

const table: Readonly<Record<string, Omit<MailSystem, 'name'>>> = {
  authelia: {
    title: 'Authelia',
    follows: 'Authelia 4.39',
    origin: 'https://auth.example.com',
    emails: `
      reset password_reset 5m /reset-password/step2?token=JWT **/reset-password/step2?token`,
    ignoredHosts: ['www.authelia.com'],
    where: 'Add this to configuration.yml.',
    configuration: `notifier:
  disable_startup_check: true
  smtp:
    address: '{smtp|submission|submissions}://{host}:{port}'
    username: '{user}'
    password: '{password}'
    sender: '{from}'
    disable_require_tls: {true|false|false}`,
  },
  authentik: {
    title: 'authentik',
    follows: 'authentik 2026.8',
    origin: 'https://id.example.com',
    emails: `
      enrolment email_verification 30m /if/flow/default-enrollment-flow/?flow_token=HEX
        **/if/flow/default-enrollment-flow/?flow_token
      recovery password_reset 30m /if/flow/default-recovery-flow/?flow_token=HEX **/if/flow/*/?flow_token`,
    ignoredHosts: ['goauthentik.io'],
    where: 'Set these variables where authentik runs.',
    configuration: `AUTHENTIK_EMAIL__HOST={host}
AUTHENTIK_EMAIL__PORT={port}
AUTHENTIK_EMAIL__USERNAME={user}
AUTHENTIK_EMAIL__PASSWORD={password}
AUTHENTIK_EMAIL__FROM={from}
AUTHENTIK_EMAIL__USE_TLS={false|true|false}
AUTHENTIK_EMAIL__USE_SSL={false|false|true}`,
  },
  devise: {
    title: 'Rails with Devise',
    follows: 'Devise 4.9, GitLab 18, Mastodon 4.5',
    origin: 'https://app.example.com',
    emails: `
      reset password_reset 6h /users/password/edit?reset_password_token=HEX **/password/edit?reset_password_token
      confirmation email_verification 3d /users/confirmation?confirmation_token=HEX
        **/confirmation?confirmation_token
      unlock email_verification 3d /users/unlock?unlock_token=HEX **/unlock?unlock_token
      invitation organisation_invite 7d /users/invitation/accept?invitation_token=HEX
        **/invitation/accept?invitation_token **/-/invites/*`,
    ignoredRules: ['**/-/invites/*/decline'],
    where: 'Add this to config/environments/production.rb.',
    configuration: `config.action_mailer.delivery_method = :smtp
config.action_mailer.smtp_settings = {
  address: "{host}", port: {port}, authentication: :plain,
  user_name: "{user}", password: "{password}",
  enable_starttls: {false|true|false}, tls: {false|false|true}
}`,
  },
  directus: {
    title: 'Directus',
    follows: 'Directus 11',
    origin: 'https://cms.example.com',
    emails: `
      reset password_reset 1d /admin/reset-password?token=JWT **/admin/reset-password?token
      registration email_verification 7d /users/register/verify-email?token=JWT **/users/register/verify-email?token
      invitation organisation_invite 7d /admin/accept-invite?token=JWT **/admin/accept-invite?token`,
    where: 'Set these variables where Directus runs.',
    configuration: `EMAIL_TRANSPORT=smtp
EMAIL_SMTP_HOST={host}
EMAIL_SMTP_PORT={port}
EMAIL_SMTP_USER={user}
EMAIL_SMTP_PASSWORD={password}
EMAIL_SMTP_SECURE={false|false|true}
EMAIL_SMTP_IGNORE_TLS={true|false|false}
EMAIL_FROM={from}`,
  },
  discourse: {
    title: 'Discourse',
    follows: 'Discourse 2026.8',
    origin: 'https://forum.example.com',
    emails: `
      reset password_reset 2d /u/password-reset/HEX **/u/password-reset/*
      activation email_verification 2d /u/activate-account/HEX **/u/activate-account/* **/u/confirm-new-email/*
        **/u/confirm-old-email/*
      sign_in magic_link 2d /session/email-login/HEX **/session/email-login/*
      invitation organisation_invite 30d /invites/HEX **/invites/*`,
    where: 'Set these variables where Discourse runs.',
    configuration: `DISCOURSE_SMTP_ADDRESS={host}
DISCOURSE_SMTP_PORT={port}
DISCOURSE_SMTP_USER_NAME={user}
DISCOURSE_SMTP_PASSWORD={password}
DISCOURSE_SMTP_ENABLE_START_TLS={false|true|false}
DISCOURSE_SMTP_FORCE_TLS={false|false|true}
DISCOURSE_NOTIFICATION_EMAIL={from}`,
  },
  django: {
    title: 'Django',
    follows: 'Django 5.2, django-allauth 65',
    origin: 'https://app.example.com',
    emails: `
      reset password_reset 3d /accounts/reset/MQ/c8k2fz-HEX/ **/reset/*/*/ **/password/reset/key/*/
      confirmation email_verification 3d /accounts/confirm-email/MQ:1uV3xQ:HEX/ **/confirm-email/*/`,
    where: 'Add this to settings.py.',
    configuration: `EMAIL_BACKEND = 'django.core.mail.backends.smtp.EmailBackend'
EMAIL_HOST = '{host}'
EMAIL_PORT = {port}
EMAIL_HOST_USER = '{user}'
EMAIL_HOST_PASSWORD = '{password}'
EMAIL_USE_TLS = {False|True|False}
EMAIL_USE_SSL = {False|False|True}
DEFAULT_FROM_EMAIL = '{from}'`,
  },
  ghost: {
    title: 'Ghost',
    follows: 'Ghost 6',
    origin: 'https://blog.example.com',
    emails: `
      sign_in magic_link 1d /members/?token=HEX&action=signin **/members/?action=signin
      sign_up email_verification 1d /members/?token=HEX&action=signup **/members/?action=signup
        **/members/?action=signup-paid **/members/?action=subscribe
        **/members/?action=updateEmail
      reset password_reset 1d /ghost/reset/HEX/ **/ghost/reset/*/ **/ghost/#/reset/*/
      invitation organisation_invite 7d /ghost/signup/HEX/ **/ghost/signup/*/ **/ghost/#/signup/*/`,
    ignoredHosts: ['ghost.org', 'static.ghost.org', 'fonts.googleapis.com'],
    where: 'Set these variables where Ghost runs.',
    configuration: `mail__transport=SMTP
mail__options__host={host}
mail__options__port={port}
mail__options__auth__user={user}
mail__options__auth__pass={password}
mail__options__secure={false|false|true}
mail__from={from}`,
  },
  gitea: {
    title: 'Gitea and Forgejo',
    follows: 'Gitea 1.25, Forgejo 13',
    origin: 'https://git.example.com',
    emails: `
      activation email_verification 3h /user/activate?code=HEX **/user/activate?code **/user/activate_email?code
      recovery password_reset 3h /user/recover_account?code=HEX **/user/recover_account?code`,
    where: 'Add this to app.ini.',
    configuration: `[mailer]
ENABLED = true
PROTOCOL = {smtp|smtp+starttls|smtps}
FROM = {from}
SMTP_ADDR = {host}
SMTP_PORT = {port}
USER = {user}
PASSWD = {password}`,
  },
  grafana: {
    title: 'Grafana',
    follows: 'Grafana 12',
    origin: 'https://grafana.example.com',
    emails: `
      reset password_reset 2h /user/password/reset?code=HEX **/user/password/reset?code
      verification email_verification 2h /signup/?email=ada%40example.com&code=HEX **/signup/?code
        **/user/email/update?code **/verify?code
      invitation organisation_invite 1d /invite/HEX **/invite/*`,
    ignoredHosts: ['grafana.com', 'fonts.googleapis.com'],
    where: 'Add this to grafana.ini.',
    configuration: `[smtp]
enabled = true
host = {host}:{port}
user = {user}
password = {password}
from_address = {from}
startTLS_policy = {NoStartTLS|MandatoryStartTLS|NoStartTLS}`,
  },
  keycloak: {
    title: 'Keycloak',
    follows: 'Keycloak 26',
    origin: 'https://id.example.com',
    emails: `
      reset password_reset 5m /realms/main/login-actions/action-token?key=JWT(reset-credentials)&client_id=app
        **/realms/*/login-actions/action-token?key.typ=reset-credentials
      verification email_verification 5m /realms/main/login-actions/action-token?key=JWT(verify-email)&client_id=app
        **/realms/*/login-actions/action-token?key.typ=verify-email
        **/realms/*/login-actions/action-token?key.typ=update-email
        **/realms/*/login-actions/action-token?key.typ=idp-verify-account-via-email
      actions password_reset 12h /realms/main/login-actions/action-token?key=JWT(execute-actions)
        **/realms/*/login-actions/action-token?key.typ=execute-actions
      invitation organisation_invite 12h /realms/main/login-actions/action-token?key=JWT(ORGIVT)
        **/realms/*/login-actions/action-token?key.typ=ORGIVT
        **/realms/*/protocol/openid-connect/registrations?token.typ=ORGIVT`,
    where: 'In the realm settings, under Email, enter this connection and turn authentication on.',
    configuration: `Host: {host}
Port: {port}
Encryption: {none|StartTLS|SSL}
Username: {user}
Password: {password}
From: {from}`,
  },
  nextcloud: {
    title: 'Nextcloud',
    follows: 'Nextcloud 32',
    origin: 'https://cloud.example.com',
    emails: `
      reset password_reset 7d /lostpassword/reset/form/HEX/ada **/lostpassword/reset/form/*/*`,
    ignoredHosts: ['nextcloud.com'],
    where: 'Set these values, for example with occ config:system:set NAME --value VALUE.',
    configuration: `mail_smtpmode = smtp
mail_smtphost = {host}
mail_smtpport = {port}
mail_smtpauth = true
mail_smtpname = {user}
mail_smtppassword = {password}
mail_smtpsecure = {||ssl}`,
  },
  strapi: {
    title: 'Strapi',
    follows: 'Strapi 5',
    origin: 'https://cms.example.com',
    emails: `
      reset password_reset 1h /admin/auth/reset-password?code=HEX **/reset-password?code
      confirmation email_verification 1d /api/auth/email-confirmation?confirmation=HEX
        **/auth/email-confirmation?confirmation
      invitation organisation_invite 7d /admin/auth/register?registrationToken=HEX
        **/auth/register?registrationToken`,
    where: 'Install @strapi/provider-email-nodemailer, and add this to config/plugins.',
    configuration: `email: {
  config: {
    provider: 'nodemailer',
    providerOptions: {
      host: '{host}', port: {port}, secure: {false|false|true},
      auth: { user: '{user}', pass: '{password}' },
    },
    settings: { defaultFrom: '{from}', defaultReplyTo: '{from}' },
  },
}`,
  },
  vaultwarden: {
    title: 'Vaultwarden',
    follows: 'Vaultwarden 1.35',
    origin: 'https://vault.example.com',
    emails: `
      verification email_verification 1d /#/verify-email/?userId=HEX&token=JWT **/#/verify-email/?token
        **/#/finish-signup/?token
      invitation organisation_invite 5d /#/accept-organization/?organizationId=HEX&token=JWT
        **/#/accept-organization/?token **/#/accept-emergency/?token`,
    ignoredHosts: ['github.com'],
    where: 'Set these variables where Vaultwarden runs.',
    configuration: `SMTP_HOST={host}
SMTP_PORT={port}
SMTP_SECURITY={off|starttls|force_tls}
SMTP_FROM={from}
SMTP_USERNAME={user}
SMTP_PASSWORD={password}`,
  },
  wordpress: {
    title: 'WordPress',
    follows: 'WordPress 6.9',
    origin: 'https://www.example.com',
    emails: `
      reset password_reset 1d /wp-login.php?action=rp&key=HEX&login=ada **/wp-login.php?action=rp
      activation email_verification 2d /wp-activate.php?key=HEX **/wp-activate.php?key
        **/wp-admin/profile.php?newuseremail`,
    where: 'Enter these values into an SMTP plugin, or add this to a plugin of your own.',
    configuration: `add_action('phpmailer_init', function ($mail) {
  $mail->isSMTP();
  $mail->Host = '{host}';
  $mail->Port = {port};
  $mail->SMTPAuth = true;
  $mail->Username = '{user}';
  $mail->Password = '{password}';
  $mail->SMTPSecure = '{|tls|ssl}';
});`,
  },
  smtp: {
    title: 'Other program',
    follows: 'RFC 6409',
    origin: 'https://app.example.com',
    emails: '',
    where: 'Enter this connection where the program has its mail settings.',
    configuration: `Host: {host}
Port: {port}
Encryption: {none|STARTTLS|TLS}
User: {user}
Password: {password}`,
  },
}

export const mailSystemTable: readonly MailSystem[] = Object.entries(table).map(([name, system]) => ({
  name,
  ...system,
}))

export const mailSystems: readonly AuthHook[] = mailSystemTable.map(newMailSystem)
