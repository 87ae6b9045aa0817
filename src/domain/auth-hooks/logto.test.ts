import assert from 'node:assert/strict'
import { test } from 'node:test'
import { logto } from './logto.ts'

/** The messages of a body, or its issues as text. */
function read(body: unknown) {
  const result = logto.read(body)
  return result.ok ? result.value : result.issues.map(({ field, code }) => `${field} ${code}`)
}

const to = 'ana@example.com'

test('an email of Logto has a code and no link', () => {
  const expected = { to, code: '246813', once: null }
  const payload = { code: '246813', link: 'https://evil.example/?token=1', organization: { name: 'Evil' } }
  for (const kind of Object.keys(logto.kinds).filter((name) => name !== 'OrganizationInvitation'))
    assert.deepEqual(read({ to, type: kind, payload }), [{ kind, ...expected }])
})

test('each type of Logto has its email', () => {
  const types = Object.entries(logto.kinds).map(([name, kind]) =>
    kind === 'notice' ? `${name} -` : [name, kind.type, kind.purpose ?? '', kind.lifeSeconds].join(' '),
  )
  assert.deepEqual(types, [
    'SignIn magic_link  600',
    'MfaVerification magic_link  600',
    'Register email_verification  600',
    'BindNewIdentifier email_verification  600',
    'BindMfa email_verification  600',
    'Generic email_verification  600',
    'ForgotPassword password_reset  600',
    'UserPermissionValidation email_verification identity 600',
    'OrganizationInvitation organisation_invite  604800',
  ])
})

test('an invitation of Logto has a link and names, and no code', () => {
  const link = 'https://app.example.com/invitations/1?a=b&c=d'
  const payload = { link, code: '246813', organization: { name: 'Example' }, inviter: { name: 'http://x' } }
  const common = { kind: 'OrganizationInvitation', to, original: link, once: null }
  const invite = (more: object) => read({ to, type: 'OrganizationInvitation', payload: { ...payload, ...more } })
  assert.deepEqual(invite({}), [{ ...common, organisationName: 'Example', inviterName: 'http://x' }])
  assert.deepEqual(invite({ organization: null, inviter: { name: 7 } }), [common])
  assert.deepEqual(invite({ link: undefined }), ['payload.link required'])
})

test('the language of a request goes along, if it is text', () => {
  const locale = (value: unknown) => read({ to, type: 'SignIn', payload: { code: '1', locale: value } })
  const message = { kind: 'SignIn', to, code: '1', once: null }
  assert.deepEqual(locale('de, en;q=0.5'), [{ ...message, locale: 'de, en;q=0.5' }])
  for (const value of [null, '', 5, ['de'], 'x'.repeat(9000)]) assert.deepEqual(locale(value), [message])
})

test('a body of Logto that lacks something is refused by the names of its fields', () => {
  assert.deepEqual(read(null), ['type required'])
  assert.deepEqual(read({ type: 7 }), ['type not_a_string'])
  assert.deepEqual(read({ type: 'SignIn' }), ['to required', 'payload.code required'])
  assert.deepEqual(read({ type: 'SignIn', to: 'ana', payload: { code: 246813 } }), [
    'to not_an_address',
    'payload.code not_a_string',
  ])
  assert.deepEqual(read({ type: 'SignIn', to, payload: { code: 'x'.repeat(8193) } }), ['payload.code too_long'])
  assert.deepEqual(read({ type: 'SignIn', to, payload: { code: '\ud800' } }), ['payload.code lone_surrogate'])
})

test('Logto shows the body of a refusal to people: it has the code and the request alone', () => {
  const answer = logto.answer({ kind: 'refused', code: 'url_not_allowed', status: 403, requestId: 'req_1' })
  assert.deepEqual(answer, { status: 403, body: { message: 'postern: url_not_allowed (req_1)' } })
})
