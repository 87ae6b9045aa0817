/**
 * Ory Kratos' courier over HTTP. The body is the one that our template makes of a message, so that no trait,
 * subject or text leaves Kratos. Kratos says how many minutes a link or code lives, counted from when it made
 * the message: an email that waited in its queue promises a little more than is left.
 */
import type { Parsed } from '../parsed.ts'
import { answerWithError } from './answers.ts'
import type { AuthHookKind, AuthHookMessage, PostingHook } from './auth-hook.ts'
import { present, readFields } from './fields.ts'

const minutesMax = 365 * 24 * 60

const kinds = {
  verification_code_valid: { type: 'email_verification', lifeSeconds: null },
  verification_valid: { type: 'email_verification', lifeSeconds: null },
  recovery_valid: { type: 'password_reset', lifeSeconds: null },
  recovery_code_valid: { type: 'password_reset', lifeSeconds: null },
  login_code_valid: { type: 'magic_link', lifeSeconds: null },
  registration_code_valid: { type: 'email_verification', lifeSeconds: null },
  verification_code_invalid: 'notice',
  verification_invalid: 'notice',
  recovery_invalid: 'notice',
  recovery_code_invalid: 'notice',
  verifiable_address_changed: 'notice',
  authenticator_key_added: 'notice',
} satisfies Record<string, AuthHookKind>

const template = `function(ctx)
  local data = if "template_data" in ctx then ctx.template_data else {};
  local first(names) = std.foldl(
    function(found, name) if found == null && name in data then data[name] else found, names, null
  );
  {
    to: ctx.recipient,
    template: ctx.template_type,
    url: first(["verification_url", "recovery_url"]),
    code: first(["verification_code", "recovery_code", "login_code", "registration_code"]),
    minutes: first(["expires_in_minutes"]),
  }
`

function read(body: unknown): Parsed<readonly AuthHookMessage[]> {
  const fields = readFields(body)
  const kind = fields.kind('template', kinds)
  if (kind === null) return fields.finish([])
  if (kinds[kind] === 'notice') return fields.finish([{ kind, to: fields.lenient('to') ?? '', once: null }])
  const to = fields.address('to')
  const lifeSeconds = fields.count('minutes', minutesMax) * 60
  const original = fields.optional('url')
  // Only with neither: one of them is enough.
  const code = original === undefined ? fields.text('code') : fields.optional('code')
  const once = JSON.stringify([kind, to, original ?? '', code ?? ''])
  return fields.finish([{ kind, to, lifeSeconds, once, ...present({ original, code }) }])
}

const links: Readonly<Record<string, string>> = {
  verification_code_valid: 'https://auth.example.com/self-service/verification?code=246813&flow=8d2f0a52',
  verification_valid: 'https://auth.example.com/self-service/verification?flow=8d2f0a52&token=q1w2e3r4',
  recovery_valid: 'https://auth.example.com/self-service/recovery?flow=8d2f0a52&token=q1w2e3r4',
}

function sample(kind: string): object {
  const valid = kind.endsWith('_valid')
  const code = kind.endsWith('_code_valid') ? '246813' : null
  const body = { to: 'someone@example.com', template: kind, url: links[kind] ?? null, code }
  return { ...body, minutes: valid ? 60 : null }
}

const setUp: PostingHook['setUp'] = ({ url, secret }) => [
  {
    text: 'Add this to the configuration of Kratos. The body is the template below, in base64.',
    block: `courier:
  delivery_strategy: http
  http:
    request_config:
      url: ${JSON.stringify(url)}
      method: POST
      headers:
        Content-Type: application/json
      body: base64://${Buffer.from(template).toString('base64')}
      auth:
        type: api_key
        config:
          name: Authorization
          value: ${JSON.stringify(`Bearer ${secret ?? 'psh_…'}`)}
          in: header`,
  },
  {
    text: 'The template sends the address, the link, the code and how long it lives, and nothing else.',
    block: template,
  },
  {
    place: 'postern',
    text: 'Turn hosted links on for this app, and allow the address of the links in emails of Kratos.',
    block: 'https://auth.example.com/self-service/*',
  },
  {
    place: 'postern',
    text: 'Allow codes for this app, and set the page where people type them. With the method "code", the emails for sign-in, registration and recovery have no link.',
  },
]

export const kratos: PostingHook = {
  name: 'kratos',
  title: 'Ory Kratos',
  follows: 'ory/kratos b86338da (29 July 2026)',
  auth: { kind: 'bearer' },
  bodyBytesMax: 32 * 1024,
  kinds,
  takes: ['pages'],
  read,
  answer: answerWithError,
  sample,
  setUp,
}
