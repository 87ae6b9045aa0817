import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { emailTypes } from '../request/email-kinds.ts'
import type { AuthHookKind, AuthHookResult, PostingHook } from './auth-hook.ts'
import { authHookNames, findPostingSystem, findSystem, postingSystems, systems } from './auth-hooks.ts'

test('a system is found by its name alone', () => {
  assert.deepEqual(
    systems.map(({ name }) => name),
    authHookNames,
  )
  for (const system of systems) assert.equal(findSystem(system.name), system)
  for (const system of postingSystems) assert.equal(findPostingSystem(system.name), system)
  assert.equal(findPostingSystem('smtp'), null)
  for (const name of ['', 'Logto', 'hanko', '__proto__', 'constructor']) assert.equal(findSystem(name), null)
})

const kindsOf = (system: PostingHook): [string, AuthHookKind][] => Object.entries(system.kinds)

test('the sample of each kind is read as a message of that kind', () => {
  for (const system of postingSystems) {
    for (const [name, kind] of kindsOf(system)) {
      const read = system.read(JSON.parse(JSON.stringify(system.sample(name))))
      assert.ok(read.ok, `${system.name} ${name}: ${JSON.stringify(read)}`)
      for (const message of read.value) {
        assert.equal(message.kind, name)
        assert.match(message.to, /@example\.com$/)
        if (kind === 'notice') continue
        assert.ok(emailTypes.includes(kind.type))
        assert.notEqual(kind.lifeSeconds ?? message.lifeSeconds, undefined, `${system.name} ${name} has a life`)
        assert.ok(message.code ?? message.token ?? message.original, `${system.name} ${name} carries something`)
      }
      assert.ok(JSON.stringify(system.sample(name)).length < system.bodyBytesMax)
    }
  }
})

test('each system says how it proves itself, and which settings it uses', () => {
  const rows = postingSystems.map(({ name, title, auth, takes }) => [name, title, auth.kind, ...takes].join(' '))
  assert.deepEqual(rows, [
    'supabase Supabase Auth signed verifyUrl pages lifeSeconds organisationName',
    'kratos Ory Kratos bearer pages',
    'zitadel Zitadel signed pages lifeSeconds organisationName',
    'logto Logto bearer pages lifeSeconds organisationName',
  ])
  for (const { follows } of postingSystems) assert.match(follows, /\d/)
})

/** Parts of the messages of a sample, as letters: code, token, original, organisation, inviter. */
const partsOf = (system: PostingHook, kind: string): string => {
  const read = system.read(system.sample(kind))
  assert.ok(read.ok)
  return read.value
    .map(({ code, token, original, organisationName, inviterName }) =>
      [code && 'c', token && 't', original && 'o', organisationName && 'O', inviterName && 'I'].join(''),
    )
    .join()
}

test('a sample has what the system sends of its kind', () => {
  const parts = postingSystems.map((system) =>
    Object.keys(system.kinds)
      .map((kind) => partsOf(system, kind))
      .join(' '),
  )
  assert.deepEqual(parts, [
    'ct ct ct t ct,ct c       ',
    'co o o c c c      ',
    'co co co co co to  ',
    'c c c c c c c c oOI',
  ])
})

test('a kind that the table does not have is refused as unknown, by the field that names it', () => {
  for (const system of postingSystems) {
    const name = Object.keys(system.kinds)[0] ?? ''
    const text = JSON.stringify(system.sample(name))
    for (const other of ['stub', 'SURPRISE', 'constructor', '__proto__', 'toString', ' ']) {
      const read = system.read(JSON.parse(text.replace(`"${name}"`, JSON.stringify(other))))
      assert.ok(!read.ok, `${system.name} ${other}`)
      assert.deepEqual(
        read.issues.map(({ code }) => code),
        ['unknown_kind'],
      )
      assert.match(
        read.issues[0]?.field ?? '',
        /^(email_data\.email_action_type|template|contextInfo\.eventType|type)$/,
      )
    }
  }
})

const mark = 'CANARY'
/** Any value; its texts have a mark that no issue has. */
const value = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(mark, `${mark}@${mark}`, `https://${mark}/?a=${mark}\ud800`, ` ${mark}\n`, mark.repeat(5000)),
  fc.constantFrom(-1, 0, 1.5, 1e300, 246813, true, false, null, [], [mark], {}, { name: mark }),
)

/** The paths of a body's fields, with those of its objects. */
const pathsOf = (body: object): string[][] =>
  Object.entries(body).flatMap(([name, inner]) => [
    [name],
    ...(typeof inner === 'object' && inner !== null ? pathsOf(inner).map((path) => [name, ...path]) : []),
  ])

function replaceAt(body: unknown, [name, ...rest]: string[], put: unknown): unknown {
  if (name === undefined) return put
  const fields = (body ?? {}) as Record<string, unknown>
  return { ...fields, [name]: replaceAt(fields[name], rest, put) }
}

/** A body of a system with some of its fields replaced. */
const altered = (system: PostingHook) =>
  fc.constantFrom(...Object.keys(system.kinds)).chain((kind) => {
    const body = system.sample(kind)
    const change = fc.tuple(fc.constantFrom(...pathsOf(body)), value)
    return fc
      .array(change, { minLength: 1, maxLength: 3 })
      .map((changes) => changes.reduce<unknown>((whole, [path, put]) => replaceAt(whole, path, put), body))
  })

test('no body makes a system throw, and no issue has a value of a body', () => {
  for (const system of postingSystems) {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), altered(system)), (body) => {
        const read = system.read(body)
        if (read.ok) {
          for (const message of read.value) {
            assert.ok(Object.hasOwn(system.kinds, message.kind))
            for (const text of [message.to, message.code, message.token, message.original, message.once ?? ''])
              assert.equal(typeof (text ?? ''), 'string')
            system.original?.(message, { verifyUrl: 'https://auth.example.com/verify' })
          }
        } else {
          assert.ok(read.issues.length > 0)
          assert.doesNotMatch(JSON.stringify(read.issues), /CANARY|246813|someone@/)
        }
      }),
      { numRuns: 2000 },
    )
  }
})

test('answers hold the code and the request, and what the status says', () => {
  const refused: AuthHookResult = {
    kind: 'refused',
    code: 'url_not_allowed',
    status: 403,
    requestId: 'req_1',
  }
  for (const system of postingSystems) {
    assert.deepEqual(system.answer({ kind: 'queued' }), { status: 200, body: {} })
    assert.match(JSON.stringify(system.answer(refused).body), /url_not_allowed.*req_1/)
    const busy: AuthHookResult = { ...refused, code: 'queue_unavailable', status: 503 }
    assert.equal(system.answer(busy).status, 503)
    assert.equal(system.answer({ ...refused, code: 'invalid_key', status: 401 }).status, 401)
  }
})

test('the instructions name the address, and the secret only if they are given it', () => {
  const url = 'https://hooks.example.com/x/acme'
  for (const system of postingSystems) {
    const steps = system.setUp({ url, secret: 'SECRET-4711' })
    for (const { text, block } of steps) {
      assert.match(text, /^[A-Z].*\.$/)
      assert.notEqual(block, '')
    }
    const shown = JSON.stringify(steps)
    assert.ok(shown.includes(url), system.name)
    assert.equal(shown.includes('SECRET-4711'), system.auth.kind === 'bearer' || system.auth.makeSecret !== null)
    const hidden = JSON.stringify(system.setUp({ url, secret: null }))
    assert.equal(hidden.replaceAll(/(psh_|v1,whsec_)…/g, 'SECRET-4711'), shown)
  }
})
