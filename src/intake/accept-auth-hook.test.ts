import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testSettings } from '../../test/support/service.ts'
import { appPolicy } from '../domain/app/app-policy.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import type { AuthHookName } from '../domain/auth-hooks/auth-hook-settings.ts'
import { findSystem } from '../domain/auth-hooks/auth-hooks.ts'
import { newId } from '../domain/id.ts'
import { judgeMessages, readMessages } from './accept-auth-hook.ts'

const nowMs = Date.parse('2026-11-20T17:00:00Z')
const app = { id: newId('app', nowMs), version: 1, slug: 'acme' }
const page = 'https://app.acme.test/code'

type Given = { body: unknown; change?: Partial<AppSettings>; baseUrl?: string | null }

/** Judges a call; a hosted link has its target in place of the sealed part. */
function judgeAll(name: AuthHookName, { body, change, baseUrl = 'https://links.acme.test' }: Given) {
  const system = findSystem(name)
  assert.ok(system)
  const hosts = ['app', 'auth', 'id'].map((host) => `https://${host}.example.com`)
  const settings = {
    ...testSettings,
    allowedUrls: ['https://app.acme.test', ...hosts],
    allowCodes: true,
    ...change,
  }
  const policy = appPolicy({ ...app, settings })
  const links = { baseUrl, seal: (_: unknown, target: object) => JSON.stringify(target) }
  return judgeMessages(system, readMessages(system, body, null), { policy, links, nowMs, traceparent: null })
}

function judge(name: AuthHookName, given: Given) {
  const [judgement] = judgeAll(name, given)
  assert.ok(judgement)
  return judgement
}

/** The one email of a call. */
function admit(name: AuthHookName, given: Given) {
  const { judged, rejection } = judge(name, given)
  assert.ok('admit' in judged.verdict, JSON.stringify(rejection))
  return judged.verdict.admit
}

const issuesOf = (name: AuthHookName, given: Given) => {
  const { rejection } = judge(name, given)
  return `${rejection?.code}: ${rejection?.issues?.map(({ field, code }) => `${field} ${code}`)}`
}

const sample = (name: AuthHookName, kind: string) => findSystem(name)?.sample(kind) as never

const life = (name: AuthHookName, given: Given) => (admit(name, given).expiresAt - nowMs) / 1000

test('a life is that of the message, else of the settings for its kind, for all, and last the usual one', () => {
  const zitadel = (lifeSeconds: Record<string, number>) => ({ authHooks: { zitadel: { lifeSeconds } } })
  const kind = 'user.human.email.code.added'
  const once = 'session.otp.email.challenged'
  const email = { body: sample('zitadel', kind) }
  assert.equal(life('zitadel', email), 3600)
  assert.equal(life('zitadel', { ...email, change: zitadel({ default: 7200 }) }), 7200)
  assert.equal(life('zitadel', { ...email, change: zitadel({ default: 7200, [kind]: 120 }) }), 120)
  const said = { body: sample('zitadel', once), change: zitadel({ default: 7200, [once]: 120 }) }
  assert.equal(life('zitadel', said), 300)
  assert.equal(life('kratos', { body: sample('kratos', 'verification_valid') }), 3600)
  assert.equal(life('logto', { body: sample('logto', 'OrganizationInvitation') }), 7 * 86_400)
})

const invite = (organization: unknown, inviter: unknown) => ({
  to: 'someone@example.com',
  type: 'OrganizationInvitation',
  payload: {
    link: 'https://app.example.com/i?code=a&id=b',
    organization: { name: organization },
    inviter: { name: inviter },
  },
})

test('names of an invitation: one that breaks the rules is left out, then those of the settings and the app', () => {
  const names = (body: unknown, organisationName?: string) => {
    const authHooks = { logto: organisationName === undefined ? {} : { organisationName } }
    const { content } = admit('logto', { body, change: { authHooks } })
    return [content.organisationName, content.inviterName]
  }
  assert.deepEqual(names(invite('Example Ltd', 'Ada')), ['Example Ltd', 'Ada'])
  assert.deepEqual(names(invite('Example Ltd', 'Ada'), 'Set'), ['Example Ltd', 'Ada'])
  assert.deepEqual(names(invite('Go to https://evil.test', 'See evil://x'), 'Set'), ['Set', undefined])
  assert.deepEqual(names(invite('a://b', 'x'.repeat(5000))), ['Acme', undefined])
  assert.deepEqual(names(invite(7, null)), ['Acme', undefined])
  const supabase = { body: sample('supabase', 'invite'), change: authHooksOf({ pages: { default: page } }) }
  const { content } = admit('supabase', supabase)
  assert.deepEqual([content.organisationName, content.code], ['Acme', undefined])
})

const authHooksOf = (supabase: object): Partial<AppSettings> => ({ authHooks: { supabase } })
const verifyUrl = 'https://auth.example.com/auth/v1/verify'

test('a page for the kind comes before the link of the auth server, and that one before the page for all', () => {
  const body = sample('supabase', 'signup')
  const url = (supabase: object) => admit('supabase', { body, change: authHooksOf(supabase) }).content.url
  const [other, own] = ['https://app.acme.test/other', 'https://app.acme.test/own']
  const hash = encodeURIComponent((body as { email_data: { token_hash: string } }).email_data.token_hash)
  assert.equal(url({ pages: { default: page, recovery: other } }), `${page}?token=${hash}`)
  assert.equal(url({ pages: { default: page, signup: own }, verifyUrl }), `${own}?token=${hash}`)
  assert.match(url({ pages: { default: page }, verifyUrl }), /^https:\/\/links\.acme\.test\/acme\/go\?token=/)
  assert.match(
    issuesOf('supabase', { body, change: authHooksOf({ pages: { recovery: other } }) }),
    /^invalid_body: authHooks\.supabase\.pages page_missing$/,
  )
})

test('a message without a token or code keeps its own link, though its kind has a page', () => {
  const sampled = sample('kratos', 'verification_valid') as object
  const change = { authHooks: { kratos: { pages: { verification_valid: page } } } }
  const { content } = admit('kratos', { body: { ...sampled, code: null }, change })
  assert.match(content.url, /^https:\/\/links\.acme\.test\/acme\/go\?token=/)
})

test('a token is one parameter, whatever is in it', () => {
  const body = sample('supabase', 'signup') as { email_data: object }
  const odd = { ...body, email_data: { ...body.email_data, token_hash: 'a&b=c#d e' } }
  const { content } = admit('supabase', { body: odd, change: authHooksOf({ pages: { default: page } }) })
  assert.deepEqual([...new URL(content.url).searchParams], [['token', 'a&b=c#d e']])
})

test('the link of an auth server is sealed with its language, and refused without hosted links', () => {
  const link = 'https://app.example.com/i?code=a&id=b'
  const body = invite('Example', 'Ada')
  const german = { ...body, payload: { ...body.payload, locale: 'de-AT' } }
  const { content, expiresAt } = admit('logto', { body: german })
  assert.equal(content.locale, 'de')
  assert.equal(content.hosted, true)
  const target = { type: 'organisation_invite', destination: link, expiresAt, locale: 'de' }
  assert.equal(content.url, `https://links.acme.test/acme/go?token=${JSON.stringify(target)}`)
  const unknown = admit('logto', { body: { ...body, payload: { ...body.payload, locale: 'tlh' } } })
  assert.equal(unknown.content.locale, undefined)
  for (const without of [{ baseUrl: null }, { change: { hostedLinks: 'off' as const } }])
    assert.match(issuesOf('logto', { body, ...without }), /^invalid_hosted_link_config: .*original_needs/)
  const { rejection } = judge('logto', { body, change: { allowedUrls: [] } })
  assert.deepEqual([rejection?.code, rejection?.origin], ['url_not_allowed', 'https://app.example.com'])
})

test('a code that the app does not allow is left out where there is more, and refused where there is not', () => {
  const change = { allowCodes: false, authHooks: { kratos: { pages: { default: page } } } }
  const link = { body: sample('kratos', 'verification_code_valid'), change }
  assert.equal(admit('kratos', link).content.code, undefined)
  assert.equal(admit('kratos', { ...link, change: { allowCodes: true } }).content.code, '246813')
  const alone = { body: sample('kratos', 'login_code_valid'), change }
  assert.equal(issuesOf('kratos', alone), 'invalid_body: allowCodes codes_not_allowed')
  const hash = {
    body: sample('supabase', 'signup'),
    change: { allowCodes: false, ...authHooksOf({ verifyUrl }) },
  }
  assert.equal(admit('supabase', hash).content.code, undefined)
  const supabase = sample('supabase', 'signup') as { email_data: object }
  const oddBeside = { ...supabase, email_data: { ...supabase.email_data, token: '<b>1</b>' } }
  const beside = { body: oddBeside, change: authHooksOf({ pages: { default: page } }) }
  assert.equal(admit('supabase', beside).content.code, undefined, 'its link is enough')
  const odd = { to: 'someone@example.com', type: 'SignIn', payload: { code: '<b>1</b>' } }
  const shown = { body: odd, change: { authHooks: { logto: { pages: { default: page } } } } }
  assert.match(issuesOf('logto', shown), /^invalid_body: code /)
})

test('the purpose of a message comes before that of its kind', () => {
  const change = authHooksOf({ verifyUrl, pages: { reauthentication: page } })
  const purposes = (kind: string) =>
    judgeAll('supabase', { body: sample('supabase', kind), change }).map(({ judged: { verdict } }) =>
      'admit' in verdict ? verdict.admit.content.purpose : 'refused',
    )
  assert.deepEqual(purposes('email_change'), [undefined, 'address_change'])
  assert.deepEqual(purposes('reauthentication'), ['identity'])
  assert.deepEqual(purposes('signup'), [undefined])
})

test('a repeat is known by its message and its system, and Logto repeats none', () => {
  const change = { authHooks: { logto: { pages: { default: page } } } }
  const keyOf = (name: AuthHookName, kind: string) =>
    judge(name, { body: sample(name, kind), change }).judged.idempotency?.key ?? null
  assert.equal(keyOf('logto', 'SignIn'), null)
  assert.match(keyOf('kratos', 'verification_valid') ?? '', /^hook kratos [\w-]{43}$/)
  assert.match(keyOf('zitadel', 'user.human.email.code.added') ?? '', /^hook zitadel [\w-]{43}$/)
})

test('a body that is no JSON, one without a message, and one that no email is for', () => {
  assert.equal(issuesOf('kratos', { body: undefined }), 'invalid_body: body not_json')
  assert.match(issuesOf('kratos', { body: 7 }), /^invalid_body: /)
  assert.equal(
    issuesOf('kratos', { body: { to: 'a@example.com', template: 'stub' } }),
    'unsupported_email: template unknown_kind',
  )
  const notice = judge('kratos', { body: sample('kratos', 'recovery_invalid') })
  assert.deepEqual(notice.judged.verdict, { refuse: 'notice_not_sent' })
})

test('emails of one page that are asked for on different grounds do not supersede each other', () => {
  const change = authHooksOf({ pages: { default: page } })
  const keyOf = (kind: string) => admit('supabase', { body: sample('supabase', kind), change }).supersedeKey
  const keys = ['signup', 'recovery', 'magiclink', 'reauthentication'].map(keyOf)
  assert.equal(new Set(keys).size, keys.length, keys.join('\n'))
  assert.equal(keyOf('signup'), keys[0])
  for (const key of keys) assert.doesNotMatch(key ?? '', /token/)
})
