/**
 * Logto's connector for email over HTTP. Its emails carry a code; invitations alone have a link. It sends
 * each email once, so a repeat of a code within a day is another email.
 */
import type { Parsed } from '../parsed.ts'
import { describeRefusal, taken } from './answers.ts'
import type { AuthHookAnswer, AuthHookKind, AuthHookMessage, AuthHookResult, PostingHook } from './auth-hook.ts'
import { present, readFields } from './fields.ts'

const codeSeconds = 600
const invitationSeconds = 7 * 24 * 3600

const kinds = {
  SignIn: { type: 'magic_link', lifeSeconds: codeSeconds },
  MfaVerification: { type: 'magic_link', lifeSeconds: codeSeconds },
  Register: { type: 'email_verification', lifeSeconds: codeSeconds },
  BindNewIdentifier: { type: 'email_verification', lifeSeconds: codeSeconds },
  BindMfa: { type: 'email_verification', lifeSeconds: codeSeconds },
  // Also sent by the button that tries the connector.
  Generic: { type: 'email_verification', lifeSeconds: codeSeconds },
  ForgotPassword: { type: 'password_reset', lifeSeconds: codeSeconds },
  UserPermissionValidation: { type: 'email_verification', purpose: 'identity', lifeSeconds: codeSeconds },
  OrganizationInvitation: { type: 'organisation_invite', lifeSeconds: invitationSeconds },
} satisfies Record<string, AuthHookKind>

function read(body: unknown): Parsed<readonly AuthHookMessage[]> {
  const fields = readFields(body)
  const kind = fields.kind('type', kinds)
  if (kind === null) return fields.finish([])
  const common = { kind, to: fields.address('to'), once: null }
  const locale = fields.lenient('payload.locale')
  if (kind !== 'OrganizationInvitation')
    return fields.finish([{ ...common, code: fields.text('payload.code'), ...present({ locale }) }])
  const names = {
    organisationName: fields.lenient('payload.organization.name'),
    inviterName: fields.lenient('payload.inviter.name'),
  }
  return fields.finish([{ ...common, original: fields.text('payload.link'), ...present({ ...names, locale }) }])
}

/** Logto shows the body of a refusal to the person. */
const answer = (result: AuthHookResult): AuthHookAnswer =>
  result.kind === 'queued' ? taken : { status: result.status, body: { message: describeRefusal(result) } }

const sample = (kind: string): object => {
  const payload =
    kind === 'OrganizationInvitation'
      ? {
          link: 'https://app.example.com/invitations/5f0q1u8n?code=j4kd92',
          organization: { id: '5f0q1u8n', name: 'Example Ltd' },
          inviter: { id: 'x7d1k2', name: 'Ada Lovelace', primaryEmail: 'ada@example.com' },
        }
      : { code: '246813', locale: 'en', application: { id: 'w3b', name: 'Example' } }
  return { to: 'someone@example.com', type: kind, payload, ip: '192.0.2.1' }
}

export const logto: PostingHook = {
  name: 'logto',
  title: 'Logto',
  follows: '@logto/connector-http-email 0.4.3',
  auth: { kind: 'bearer' },
  // A payload has the custom data of the user and the organisation.
  bodyBytesMax: 128 * 1024,
  kinds,
  takes: ['pages', 'lifeSeconds', 'organisationName'],
  read,
  answer,
  sample,
  setUp: ({ url, secret }) => [
    {
      text: 'In the Logto console, under Connectors, add the email connector "HTTP Email" with this configuration.',
      block: JSON.stringify({ endpoint: url, authorization: `Bearer ${secret ?? 'psh_…'}` }, null, 2),
    },
    {
      text: 'Once the settings in Postern are saved, send a test email from the connector: it has the code 000000.',
    },
    {
      place: 'postern',
      text: 'Allow codes for this app, and set the page where people type them: emails of Logto have a code and no link.',
    },
    {
      place: 'postern',
      text: 'If codes do not live for 10 minutes in Logto, set their life here too.',
    },
    {
      place: 'postern',
      text: 'To invite people to organisations, turn hosted links on for this app, and allow the page that the links of your invitations open.',
    },
  ],
}
