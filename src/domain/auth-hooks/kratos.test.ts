import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { parse } from 'yaml'
import { lacking, toolPath } from '../../../test/support/installed.ts'
import { kratos } from './kratos.ts'

/** The messages of a body, or its issues as text. */
function read(body: unknown) {
  const result = kratos.read(body)
  return result.ok ? result.value : result.issues.map(({ field, code }) => `${field} ${code}`)
}

const to = 'ana@example.com'

test('each template of Kratos has its email', () => {
  const templates = Object.entries(kratos.kinds).map(([name, kind]) =>
    kind === 'notice' ? `${name} -` : [name, kind.type, kind.purpose ?? '', kind.lifeSeconds].join(' '),
  )
  assert.deepEqual(templates, [
    'verification_code_valid email_verification  ',
    'verification_valid email_verification  ',
    'recovery_valid password_reset  ',
    'recovery_code_valid password_reset  ',
    'login_code_valid magic_link  ',
    'registration_code_valid email_verification  ',
    'verification_code_invalid -',
    'verification_invalid -',
    'recovery_invalid -',
    'recovery_code_invalid -',
    'verifiable_address_changed -',
    'authenticator_key_added -',
  ])
})

const url = 'https://auth.example.com/self-service/verification?code=246813&flow=1'

test('an email of Kratos has a link, a code or both, and its life', () => {
  const kind = 'verification_code_valid'
  const body = { to, template: kind, url, code: '246813', minutes: 15 }
  const message = { kind, to, lifeSeconds: 900 }
  const once = (...parts: string[]) => JSON.stringify([kind, to, ...parts])
  assert.deepEqual(read(body), [{ ...message, original: url, code: '246813', once: once(url, '246813') }])
  assert.deepEqual(read({ ...body, code: null }), [{ ...message, original: url, once: once(url, '') }])
  for (const none of [null, '', undefined])
    assert.deepEqual(read({ ...body, url: none }), [{ ...message, code: '246813', once: once('', '246813') }])
  assert.deepEqual(read({ ...body, url: null, code: null }), ['code required'])
  assert.deepEqual(read({ ...body, url: 5, code: 246813 }), ['url not_a_string', 'code not_a_string'])
})

test('the life is a whole number of minutes, of a year at most', () => {
  const life = (minutes: unknown) => read({ to, template: 'login_code_valid', code: '246813', minutes })
  for (const minutes of [1, 60, 525_600]) assert.match(JSON.stringify(life(minutes)), new RegExp(`:${minutes * 60},`))
  for (const minutes of [0, -1, 1.5, 525_601, 1e300, '60', true, [60]])
    assert.deepEqual(life(minutes), ['minutes out_of_range'])
  for (const minutes of [null, undefined, '']) assert.deepEqual(life(minutes), ['minutes required'])
})

test('a notice of Kratos needs nothing, and an unknown template is one issue', () => {
  assert.deepEqual(read({ template: 'stub' }), ['template unknown_kind'])
  assert.deepEqual(read({ template: 'recovery_invalid' }), [{ kind: 'recovery_invalid', to: '', once: null }])
})

test('an answer to Kratos has the status of the refusal', () => {
  const answer = kratos.answer({ kind: 'refused', code: 'key_rate_limited', status: 429, requestId: 'req_1' })
  assert.deepEqual(answer, {
    status: 429,
    body: { ok: false, error: { code: 'key_rate_limited', requestId: 'req_1' } },
  })
})

/** The configuration as it is pasted, the template in it, and the template as it is shown. */
function readSetUp() {
  const steps = kratos.setUp({ url: 'https://hooks.example.com/kratos/acme', secret: 'psh_4711' })
  const { courier } = parse(steps[0]?.block ?? '')
  const [, encoded = ''] = courier.http.request_config.body.split('base64://')
  return { courier, template: Buffer.from(encoded, 'base64').toString(), shown: steps[1]?.block }
}

test('the configuration of Kratos has the address, the secret and the template that is shown', () => {
  const { courier, template, shown } = readSetUp()
  assert.equal(template, shown)
  const { body: _, ...rest } = courier.http.request_config
  assert.equal(courier.delivery_strategy, 'http')
  assert.deepEqual(rest, {
    url: 'https://hooks.example.com/kratos/acme',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    auth: { type: 'api_key', config: { name: 'Authorization', value: 'Bearer psh_4711', in: 'header' } },
  })
})

// `template_data` is the template's struct as JSON; these are the struct tags of the templates.
const always = { request_url: 'https://auth.example.com/CANARY', transient_payload: { secret: 'CANARY' } }
const identity = { id: '8d2f0a52', traits: { email: to, name: 'CANARY "\\ \u2028é' } }
const life = { expires_in_minutes: 15 }
const code = '246813'
const templates: Record<string, { data: object; expected?: object }> = {
  recovery_invalid: { data: {} },
  recovery_code_invalid: { data: {} },
  verification_invalid: { data: {} },
  verification_code_invalid: { data: {} },
  verifiable_address_changed: { data: { identity } },
  authenticator_key_added: { data: { identity } },
  recovery_valid: { data: { recovery_url: url, identity, ...life }, expected: { original: url } },
  recovery_code_valid: { data: { recovery_code: code, identity, ...life }, expected: { code } },
  verification_valid: { data: { verification_url: url, identity, ...life }, expected: { original: url } },
  verification_code_valid: {
    data: { verification_url: url, verification_code: code, identity, ...life },
    expected: { original: url, code },
  },
  login_code_valid: { data: { login_code: code, identity, ...life }, expected: { code } },
  registration_code_valid: {
    data: { registration_code: code, traits: identity.traits, ...life },
    expected: { code },
  },
  stub: { data: { subject: 'CANARY', body: 'CANARY' } },
}

test('the template makes a body of each message of Kratos, without traits and texts', {
  skip: lacking('jsonnet'),
}, () => {
  const evaluate = (context: object): unknown =>
    JSON.parse(
      execFileSync(toolPath('jsonnet'), ['--tla-code', `ctx=${JSON.stringify(context)}`, '-e', readSetUp().template], {
        encoding: 'utf8',
      }),
    )
  assert.equal(Object.keys(templates).length, 13)
  assert.deepEqual(
    Object.keys(templates).filter((name) => !Object.hasOwn(kratos.kinds, name)),
    ['stub'],
  )
  for (const [name, { data, expected }] of Object.entries(templates)) {
    const context = {
      ...{ recipient: to, subject: 'CANARY', body: 'CANARY', html_body: 'CANARY', message_type: 'email' },
      ...{ template_type: name, template_data: { to, ...always, ...data } },
    }
    const body = evaluate(context)
    assert.deepEqual(Object.keys(body as object).sort(), ['code', 'minutes', 'template', 'to', 'url'])
    assert.doesNotMatch(JSON.stringify(body), /CANARY/)
    const message = read(body)[0]
    if (expected !== undefined) {
      assert.ok(typeof message === 'object')
      const { once, ...rest } = message
      assert.deepEqual(rest, { kind: name, to, lifeSeconds: 900, ...expected })
      assert.equal(JSON.stringify(evaluate({ ...context, subject: 'another' })), JSON.stringify(body))
      assert.equal(typeof once, 'string')
    } else if (name === 'stub') assert.equal(message, 'template unknown_kind')
    else assert.deepEqual(message, { kind: name, to, once: null })
  }
  const bare = evaluate({ recipient: to, template_type: 'recovery_invalid' })
  assert.deepEqual(bare, { to, template: 'recovery_invalid', url: null, code: null, minutes: null })
})
