/**
 * Zitadel's notification provider over HTTP. Its link has several parameters, and the login name as it is, so
 * the query is escaped. It says a life for one-time passwords alone.
 */

import type { Parsed } from '../parsed.ts'
import { emailKinds } from '../request/email-kinds.ts'
import { quoteForShell } from '../shell.ts'
import { verifyZitadel } from '../signatures.ts'
import { answerWithError } from './answers.ts'
import type { AuthHookKind, AuthHookMessage, PostingHook } from './auth-hook.ts'
import { escapeQuery, present, readFields } from './fields.ts'

const hourSeconds = 3600
const nanoseconds = 1e9
const expiryMax = 30 * 24 * hourSeconds * nanoseconds

const kinds = {
  'user.human.initialization.code.added': { type: 'email_verification', lifeSeconds: 72 * hourSeconds },
  'user.human.email.code.added': { type: 'email_verification', lifeSeconds: hourSeconds },
  'user.human.password.code.added': { type: 'password_reset', lifeSeconds: hourSeconds },
  'user.human.mfa.otp.email.code.added': { type: 'magic_link', lifeSeconds: null },
  'session.otp.email.challenged': { type: 'magic_link', lifeSeconds: null },
  'user.human.invite.code.added': { type: 'organisation_invite', lifeSeconds: 72 * hourSeconds },
  'user.human.password.changed': 'notice',
  'user.domain.claimed': 'notice',
} satisfies Record<string, AuthHookKind>
type EventType = keyof typeof kinds

// Users of old versions have events without `human`.
const formerKinds: Readonly<Record<string, EventType>> = {
  'user.initialization.code.added': 'user.human.initialization.code.added',
  'user.email.code.added': 'user.human.email.code.added',
  'user.password.code.added': 'user.human.password.code.added',
  'user.password.changed': 'user.human.password.changed',
}

const addressPath = 'contextInfo.recipientEmailAddress'

function read(body: unknown): Parsed<readonly AuthHookMessage[]> {
  const fields = readFields(body)
  const name = fields.kind('contextInfo.eventType', { ...kinds, ...formerKinds })
  if (name === null) return fields.finish([])
  const kind = formerKinds[name] ?? (name as EventType)
  const about: AuthHookKind = kinds[kind]
  if (about === 'notice') return fields.finish([{ kind, to: fields.lenient(addressPath) ?? '', once: null }])
  const to = fields.address(addressPath)
  const original = escapeQuery(fields.text('templateData.url'))
  const code = fields.optional('args.code')
  const once = JSON.stringify([kind, to, original, code ?? ''])
  const common = { kind, to, original, once }
  if (emailKinds[about.type].hasNames) {
    const app = fields.lenient('args.applicationName')
    return fields.finish([
      { ...common, ...present({ organisationName: app === 'ZITADEL' ? undefined : app, token: code }) },
    ])
  }
  const life =
    about.lifeSeconds === null ? { lifeSeconds: Math.ceil(fields.count('args.expiry', expiryMax) / nanoseconds) } : {}
  return fields.finish([{ ...common, ...life, ...present({ code }) }])
}

function sample(kind: string): object {
  const spoken = kind.endsWith('.changed') || kind.endsWith('.claimed') ? undefined : '0M53RF'
  const once = kind.includes('.otp.') ? { expiry: 300 * nanoseconds } : {}
  return {
    contextInfo: {
      eventType: kind,
      provider: { id: '285181292935381355', description: 'Postern' },
      recipientEmailAddress: 'someone@example.com',
    },
    templateData: {
      title: 'Example',
      subject: 'Example',
      text: 'The text of Zitadel, which Postern does not send.',
      url: 'https://id.example.com/ui/login/mail/verification?userID=285181014567813483&code=0M53RF&orgID=275353657317327214',
      buttonText: 'Continue',
      primaryColor: '#5469d4',
    },
    args: {
      ...{ code: spoken, ...once, applicationName: 'ZITADEL', domain: 'id.example.com' },
      ...{ userName: 'someone', firstName: 'Ada', lastName: 'Lovelace', loginNames: ['someone'] },
    },
  }
}

const keyShape = /^[\x21-\x7e]{16,256}$/

const checkSecret = (secret: string): string | null =>
  keyShape.test(secret)
    ? null
    : 'A signing key of Zitadel has 16 to 256 characters without spaces: "signingKey" of the answer that made the provider.'

const call = (path: string, body: object): string =>
  `curl -X POST 'https://ZITADEL_DOMAIN/admin/v1/email/${path}' \\
  -H 'Content-Type: application/json' -H 'Authorization: Bearer TOKEN' \\
  -d ${quoteForShell(JSON.stringify(body))}`

export const zitadel: PostingHook = {
  name: 'zitadel',
  title: 'Zitadel',
  follows: 'zitadel/zitadel 10a0702a',
  auth: {
    kind: 'signed',
    verify: ({ secret, ...signed }) => checkSecret(secret) === null && verifyZitadel(signed, Buffer.from(secret)),
    makeSecret: null,
    checkSecret,
  },
  bodyBytesMax: 64 * 1024,
  kinds,
  takes: ['pages', 'lifeSeconds', 'organisationName'],
  read,
  answer: answerWithError,
  sample,
  setUp: ({ url }) => [
    {
      text: 'Add an email provider over HTTP to the instance, with the token of an instance administrator. The answer contains its id and its signingKey.',
      block: call('http', { endpoint: url, description: 'Postern' }),
    },
    {
      text: 'Copy the signingKey into Postern. Zitadel shows it once, and Postern refuses requests without a signature.',
    },
    {
      text: 'Activate the provider. From then on it gets all emails of the instance.',
      block: call('ID/_activate', {}),
    },
    {
      place: 'postern',
      text: 'Turn hosted links on for this app, and allow the address of the links in emails of Zitadel. It must be https.',
      block: 'https://ZITADEL_DOMAIN/ui/*',
    },
    {
      place: 'postern',
      text: 'Zitadel sends how long a code lives with one-time passwords only. If you changed it, set it here too. To show codes beside links, allow them for this app.',
    },
  ],
}
