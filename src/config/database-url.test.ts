import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDatabaseUrl } from './database-url.ts'

const address = (text: string) => {
  const parsed = parseDatabaseUrl(text)
  assert.ok('engine' in parsed && parsed.engine === 'postgres', JSON.stringify(parsed))
  return parsed
}

test('a file, with one slash or three', () => {
  assert.deepEqual(parseDatabaseUrl('sqlite:./data/x.db'), { engine: 'sqlite', path: './data/x.db' })
  assert.deepEqual(parseDatabaseUrl('sqlite:///var/x.db'), { engine: 'sqlite', path: '/var/x.db' })
})

test('one server, by its defaults', () => {
  assert.deepEqual(address('postgres://ada:p%40ss%3A1@db.example.com/mail'), {
    engine: 'postgres',
    hosts: [{ host: 'db.example.com', port: 5432 }],
    user: 'ada',
    password: 'p@ss:1',
    database: 'mail',
    schema: 'postern',
    tls: { ca: null },
  })
})

test('several servers, an IPv6 address, a socket folder', () => {
  assert.deepEqual(address('postgresql://u@one:5433,[::1],two/d').hosts, [
    { host: 'one', port: 5433 },
    { host: '::1', port: 5432 },
    { host: 'two', port: 5432 },
  ])
  assert.deepEqual(address('postgres://u@/d?host=/run/postgresql').hosts, [{ host: '/run/postgresql', port: 5432 }])
})

test('TLS is verified, except to loopback and sockets, or where it is turned off in so many words', () => {
  const tls = (rest: string) => address(`postgres://u:p@${rest}`).tls
  assert.deepEqual(tls('db/d'), { ca: null })
  assert.deepEqual(tls('127.0.0.1,db/d'), { ca: null })
  assert.deepEqual(tls('db/d?sslmode=require'), { ca: null })
  assert.deepEqual(tls('localhost/d?sslrootcert=/ca.pem'), { ca: '/ca.pem' })
  assert.equal(tls('localhost:5433/d'), null)
  assert.equal(tls('127.0.0.1/d?schema=mail'), null)
  assert.equal(tls('db/d?sslmode=disable'), null)
})

const wrong: [string, RegExp][] = [
  ['mysql://u@h/d', /sqlite:.*postgres:/],
  ['postgres://h/d', /name the user/],
  ['postgres://u:secret@/d', /name a host/],
  ['postgres://u:secret@h:0/d', /name a host/],
  ['postgres://u:secret@h', /sqlite:.*postgres:/],
  ['postgres://u:secret@h/d?sslmode=prefer', /verify-full/],
  ['postgres://u:secret@h/d?schema=My-Mail', /schema/],
  ['postgres://u:secret@h/d?pool=9', /unknown option/],
  ['postgres://u:s@secret@h/d', /user, password or key write @/],
  ['postgres://u:s/e?secret@h/d', /unknown option|sqlite:/],
  ['postgres://u:secret@h/d?target_session_attrs=any', /writable/],
]

for (const [text, fault] of wrong) {
  test(`refused: ${text}`, () => {
    const parsed = parseDatabaseUrl(text)
    assert.ok('fault' in parsed)
    assert.match(parsed.fault, fault)
    assert.doesNotMatch(parsed.fault, /secret/)
  })
}
