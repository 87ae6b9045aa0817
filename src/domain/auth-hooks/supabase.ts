/**
 * Supabase Auth's "Send Email" hook. A secure change of address asks for two emails, and its names are
 * crossed: `token_hash` goes to the new address, `token_hash_new` to the current one. `site_url` is never
 * read: it is the address of the API in some versions, and of the app in others.
 */
import { randomBytes } from 'node:crypto'
import type { Parsed } from '../parsed.ts'
import { verifyStandardWebhook } from '../signatures.ts'
import { describeRefusal, taken } from './answers.ts'
import type { AuthHookAnswer, AuthHookKind, AuthHookMessage, AuthHookResult, PostingHook } from './auth-hook.ts'
import { escapeQuery, type FieldReader, present, readFields } from './fields.ts'
import { sampleSupabase, setUpSupabase } from './supabase-texts.ts'

// "Email OTP expiration" in the dashboard. A server of one's own has 86,400 s unless it is set.
const lifeSeconds = 3600

const kinds = {
  signup: { type: 'email_verification', lifeSeconds },
  magiclink: { type: 'magic_link', lifeSeconds },
  recovery: { type: 'password_reset', lifeSeconds },
  invite: { type: 'organisation_invite', lifeSeconds },
  email_change: { type: 'email_verification', lifeSeconds },
  reauthentication: { type: 'email_verification', purpose: 'identity', lifeSeconds },
  password_changed_notification: 'notice',
  email_changed_notification: 'notice',
  phone_changed_notification: 'notice',
  identity_linked_notification: 'notice',
  identity_unlinked_notification: 'notice',
  mfa_factor_enrolled_notification: 'notice',
  mfa_factor_unenrolled_notification: 'notice',
} satisfies Record<string, AuthHookKind>
type Action = keyof typeof kinds

function read(body: unknown): Parsed<readonly AuthHookMessage[]> {
  const fields = readFields(body)
  const kind = fields.kind('email_data.email_action_type', kinds)
  return fields.finish(kind === null ? [] : readMessages(fields, kind))
}

function readMessages(fields: FieldReader, kind: Action): AuthHookMessage[] {
  if (kinds[kind] === 'notice') return [{ kind, to: fields.lenient('user.email') ?? '', once: null }]
  if (kind === 'reauthentication') {
    const [to, typed] = [fields.address('user.email'), fields.text('email_data.token')]
    return [{ kind, to, code: typed, once: JSON.stringify([kind, to, typed]) }]
  }
  const code = fields.optional('email_data.token')
  const redirectTo = fields.optional('email_data.redirect_to')
  const link = (to: string, token: string, typed: string | undefined): AuthHookMessage => {
    const once = JSON.stringify([kind, to, token])
    return { kind, to, token, once, ...present({ code: typed, redirectTo }) }
  }
  const hash = fields.text('email_data.token_hash')
  if (kind !== 'email_change') return [link(fields.address('user.email'), hash, kind === 'invite' ? undefined : code)]
  const changed = link(fields.address('user.new_email'), hash, fields.optional('email_data.token_new') ?? code)
  const currentHash = fields.optional('email_data.token_hash_new')
  if (currentHash === undefined) return [changed]
  return [changed, { ...link(fields.address('user.email'), currentHash, code), purpose: 'address_change' }]
}

/** The link that Supabase itself would send. */
const original: PostingHook['original'] = ({ kind, token, redirectTo = '' }, { verifyUrl }) => {
  if (verifyUrl === undefined || token === undefined) return null
  // Like Supabase: an address with none of these is taken for encoded.
  const next = /[&=#]/.test(redirectTo) ? encodeURIComponent(redirectTo) : redirectTo
  return escapeQuery(`${verifyUrl}?token=${encodeURIComponent(token)}&type=${kind}&redirect_to=${next}`)
}

/** Refusals of the message itself; the others are about the settings of its link. */
const unprocessable: ReadonlySet<string> = new Set(['invalid_body', 'unsupported_email'])

/**
 * Supabase reads the body of 200 alone, and passes code and message to the app. It calls again at once after
 * a 503 that has `Retry-After`.
 */
function answer(result: AuthHookResult): AuthHookAnswer {
  if (result.kind === 'queued') return taken
  const { code, status } = result
  const passed = [401, 429, 503].includes(status) ? status : unprocessable.has(code) ? 422 : 500
  const body = { error: { http_code: passed, message: describeRefusal(result) } }
  return { status: status === 401 || status === 503 ? status : 200, body }
}

const secretHead = 'v1,whsec_'
/** 32 to 88 characters of base64 (RFC 4648), as the server asks for. */
const secretShape = /^v1,whsec_(?:[A-Za-z0-9+/]{4}){7,21}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/

const checkSecret = (secret: string): string | null =>
  secretShape.test(secret)
    ? null
    : 'A secret of Supabase is v1,whsec_ and 32 to 88 characters of base64, as the dashboard shows it.'

export const supabase: PostingHook = {
  name: 'supabase',
  title: 'Supabase Auth',
  follows: 'supabase/auth bc32168e (20 August 2026)',
  auth: {
    kind: 'signed',
    verify: ({ secret, ...call }) =>
      checkSecret(secret) === null &&
      verifyStandardWebhook(call, Buffer.from(secret.slice(secretHead.length), 'base64')),
    makeSecret: () => `${secretHead}${randomBytes(32).toString('base64')}`,
    checkSecret,
  },
  // A call has the whole user, with everything that the app keeps there.
  bodyBytesMax: 128 * 1024,
  kinds,
  takes: ['verifyUrl', 'pages', 'lifeSeconds', 'organisationName'],
  read,
  original,
  answer,
  sample: sampleSupabase,
  setUp: setUpSupabase,
}
