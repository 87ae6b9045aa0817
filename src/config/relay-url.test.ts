import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/support/temporary.ts'
import { findApiService } from '../services/services.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { newReader, urlEscapes } from './reader.ts'
import { parseRelayUrl } from './relay-url.ts'
import { readRelayDefaults, readRelays } from './relays.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
const account = {
  type: 'service_account',
  client_email: 'robot@p.iam',
  private_key: pem,
  private_key_id: 'k1',
}

function read(url: string) {
  const { relay, faults } = parseRelayUrl(url)
  assert.deepEqual(faults, [], url)
  assert.ok(relay !== null)
  return relay
}

const faultsOf = (url: string): string => {
  const { relay, faults } = parseRelayUrl(url)
  assert.equal(relay, null, url)
  return faults.join('\n')
}

const mailbox = 'smtp://no-reply%40acme.com@smtp.office365.com'

test('Microsoft 365 by SMTP: the mailbox, a token for it, and Microsoft’s limits', () => {
  const relay = read(`${mailbox}?oauth=microsoft&tenant=acme.com&client=c1&secret=a~b+c`)
  assert.deepEqual(relay.address.protocol === 'smtp' && relay.address.credentials, {
    user: 'no-reply@acme.com',
    oauth: {
      tokenUrl: 'https://login.microsoftonline.com/acme.com/oauth2/v2.0/token',
      clientId: 'c1',
      scope: 'https://outlook.office365.com/.default',
      grant: { kind: 'secret', secret: 'a~b+c' },
    },
  })
  assert.deepEqual([relay.connectionsMax, relay.rate, relay.takesReserved], [3, 0.5, false])
  const own = read(`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=s&rate=10/m&connections=1`)
  assert.deepEqual([own.connectionsMax, own.rate], [1, 10 / 60])
})

test('Microsoft 365, and a relay whose URL says so, keep the sender; a provider is known by its host or the URL', () => {
  const marks = (url: string) => {
    const { address } = read(url)
    assert.ok(address.protocol === 'smtp')
    return [address.keepsSender, address.service?.name ?? null]
  }
  assert.deepEqual(marks('smtp://a:b@smtp.office365.com'), [true, 'microsoft'])
  assert.deepEqual(marks('smtp://a:b@SMTP.Office365.com'), [true, 'microsoft'])
  assert.deepEqual(marks('smtp://a:b@SMTP.PostmarkApp.com'), [false, 'postmark'])
  assert.deepEqual(marks(`smtp://a@mx.acme.com?oauth=microsoft&tenant=t&client=c&secret=s`), [true, 'microsoft'])
  assert.deepEqual(marks('smtps://a:b@mx.acme.com?envelope=plain'), [true, null])
  assert.deepEqual(marks('smtp://a:b@smtp.postmarkapp.com'), [false, 'postmark'])
  assert.deepEqual(marks('smtp://a:b@smtp.sendgrid.net'), [false, 'sendgrid'])
  assert.deepEqual(marks('smtp://a:b@smtp-relay.brevo.com'), [false, 'brevo'])
  assert.deepEqual(marks('smtp://a:b@mx.acme.com?provider=brevo'), [false, 'brevo'])
  const keepsSender = (url: string) => {
    const { address } = read(url)
    return address.protocol === 'https' && (address.account as { keepsSender: boolean }).keepsSender
  }
  assert.deepEqual(
    ['', '?envelope=plain'].map((options) => keepsSender(`ses://AK:s@eu-west-1${options}`)),
    [false, true],
  )
})

test('secrets come from files, whose last newline is no part of them', (t) => {
  const folder = temporaryFolder(t)
  const [secret, key, empty] = ['secret', 'key.json', 'empty'].map((name) => join(folder, name))
  writeFileSync(secret ?? '', 'the-value\n', { mode: 0o600 })
  writeFileSync(key ?? '', JSON.stringify(account), { mode: 0o600 })
  writeFileSync(empty ?? '', '\n', { mode: 0o600 })
  const byMicrosoft = read(`graph://a@acme.com?tenant=t&client=c&secret=file:${secret}`).address
  assert.ok(byMicrosoft.protocol === 'https')
  assert.deepEqual(byMicrosoft.oauth?.grant, { kind: 'secret', secret: 'the-value' })
  assert.equal(byMicrosoft.oauth?.scope, 'https://graph.microsoft.com/.default')
  const byGoogle = read(`smtp://a%40acme.com@smtp.gmail.com?oauth=google&key=file:${key}`).address
  assert.ok(byGoogle.protocol === 'smtp' && byGoogle.credentials !== null && 'oauth' in byGoogle.credentials)
  assert.deepEqual(byGoogle.credentials.oauth, {
    tokenUrl: 'https://oauth2.googleapis.com/token',
    clientId: 'robot@p.iam',
    scope: 'https://mail.google.com/',
    grant: {
      kind: 'service_account',
      account: { email: 'robot@p.iam', key: pem, keyId: 'k1' },
      mailbox: 'a@acme.com',
    },
  })
  assert.match(faultsOf(`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=file:${empty}`), /is empty/)
  assert.match(faultsOf(`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=file:/nope`), /cannot read/)
  chmodSync(secret ?? '', 0o644)
  assert.match(faultsOf(`graph://a@acme.com?tenant=t&client=c&secret=file:${secret}`), /chmod 600/)
})

test('a certificate: one that has expired is a fault, a key without one is for other servers', (t) => {
  const folder = temporaryFolder(t)
  const make = (name: string, days: string) => {
    const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.cert`)]
    const subject = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=postern']
    execFileSync('openssl', [...subject, '-days', days, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    const write = (file: string, parts: readonly string[]) => {
      writeFileSync(join(folder, file), execFileSync('cat', parts), { mode: 0o600 })
    }
    write(`${name}.pem`, [key, cert])
    write(`${name}-turned.pem`, [cert, key])
    write(`${name}-alone.pem`, [key])
    return readFileSync(cert, 'utf8').trim()
  }
  const certificate = make('good', '9')
  const grantOf = (file: string) => {
    const { address } = read(`graph://a@acme.com?tenant=t&client=c&key=file:${join(folder, file)}`)
    assert.ok(address.protocol === 'https')
    const grant = address.oauth?.grant
    assert.ok(grant?.kind === 'key')
    return grant.certificate
  }
  assert.equal(grantOf('good.pem'), certificate)
  assert.ok(grantOf('good-turned.pem')?.startsWith(certificate), 'in either order')
  assert.equal(grantOf('good-alone.pem'), null)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 10 * 86_400_000 })
  assert.match(
    faultsOf(`graph://a@acme.com?tenant=t&client=c&key=file:${join(folder, 'good.pem')}`),
    /certificate in key expired on/,
  )
})

test('mail APIs: account, endpoint and bounds of each', () => {
  assert.deepEqual(read('ses://AK:s%2Fcret+1@eu-west-1?set=main').address, {
    protocol: 'https',
    endpoint: 'https://email.eu-west-1.amazonaws.com',
    service: findApiService('ses'),
    oauth: null,
    account: {
      region: 'eu-west-1',
      keyId: 'AK',
      secret: 's/cret+1',
      sets: [{ name: 'main', seconds: 50_400 }],
      keepsSender: false,
    },
  })
  const resend = read('resend://re_1@api.resend.com')
  assert.deepEqual(resend.address.protocol === 'https' && resend.address.account, {
    key: 're_1',
  })
  assert.deepEqual([resend.rate, resend.takesReserved], [2, false])
  const postmark = read('postmark://tk@api.postmarkapp.com?stream=outbound-2&reserved=send')
  assert.deepEqual(postmark.address.protocol === 'https' && postmark.address.account, {
    token: 'tk',
    stream: 'outbound-2',
  })
  assert.equal(postmark.takesReserved, true)
  const sovereign = read('graph://a@acme.us?tenant=t&client=c&secret=s&endpoint=https://graph.microsoft.us')
  assert.ok(sovereign.address.protocol === 'https')
  assert.equal(sovereign.address.oauth?.scope, 'https://graph.microsoft.us/.default')
  assert.deepEqual([sovereign.connectionsMax, sovereign.rate], [3, 0.5])
})

test('another token server: its URL, with a refresh token too', () => {
  const { address } = read(
    'smtp://a%40acme.com@mx.acme.com?oauth=https://id.acme.com/token&client=c&refresh=r1&scope=mail%20offline',
  )
  assert.ok(address.protocol === 'smtp' && address.credentials !== null && 'oauth' in address.credentials)
  assert.deepEqual(address.credentials.oauth, {
    tokenUrl: 'https://id.acme.com/token',
    clientId: 'c',
    scope: 'mail offline',
    grant: { kind: 'refresh', refreshToken: 'r1', secret: null },
  })
})

const guid = '8a6c1a52-0d0c-4a1e-9d5e-3f0d4b6c7e11'
test('a secret that looks like an id of Microsoft is one, at another server', () => {
  const { address } = read(`smtp://a%40acme.com@mx.acme.com?oauth=https://id.acme.com/token&client=c&secret=${guid}`)
  assert.ok(address.protocol === 'smtp' && address.credentials !== null && 'oauth' in address.credentials)
  assert.deepEqual(address.credentials.oauth.grant, { kind: 'secret', secret: guid })
})

test('what is written as faults advise is read as it is, with every character', () => {
  const [, named = '', codes = ''] = /write (.+) and a space as (.+) %20$/.exec(urlEscapes) ?? []
  const escaped = [...named.split(' '), ' ']
  assert.deepEqual(escaped.map(encodeURIComponent), [...codes.split(' '), '%20'])
  const readOne = (url: string) => {
    const faults: string[] = []
    const reader = newReader({ POSTERN_SMTP_URL: url }, 'serve', faults)
    const [relay] = readRelays(reader, readRelayDefaults(reader, null), { sends: true })
    assert.deepEqual(faults, [])
    return relay?.address
  }
  for (let code = 0x20; code < 0x7f; code++) {
    const character = String.fromCharCode(code)
    const expected = `a${character}41b`
    const text = escaped.includes(character) ? `a${encodeURIComponent(character)}41b` : expected
    const smtp = readOne(`smtp://${text}:${text}@mx.acme.com`)
    assert.deepEqual(smtp?.protocol === 'smtp' && smtp.credentials, { user: expected, pass: expected })
    const api = readOne(`resend://${text}@api.resend.com`)
    assert.ok(api?.protocol === 'https')
    assert.deepEqual(api.account, { key: expected })
    const microsoft = readOne(`${mailbox}?oauth=microsoft&tenant=acme.com&client=${text}&secret=s`)
    assert.ok(microsoft?.protocol === 'smtp' && microsoft.credentials !== null)
    assert.ok('oauth' in microsoft.credentials)
    assert.equal(microsoft.credentials.oauth.clientId, expected)
    const database = parseDatabaseUrl(`postgres://${text}:${text}@host/postern`)
    assert.ok('password' in database)
    assert.deepEqual([database.user, database.password], [expected, expected])
  }
})

test('a key that is not RSA is refused: no assertion could be signed with it', (t) => {
  const file = join(temporaryFolder(t), 'ec.pem')
  const { privateKey: ec } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(file, ec.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
  const { faults } = parseRelayUrl(`${mailbox}?oauth=microsoft&tenant=acme.com&client=c&key=file:${file}`)
  assert.match(faults.join(), /not RSA/)
})

const wrong: [url: string, fault: RegExp][] = [
  [`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=${guid}`, /Secret ID; copy the Value/],
  [`${mailbox}?oauth=microsoft&client=c&secret=s`, /needs tenant/],
  [`${mailbox}?oauth=microsoft&tenant=../t&client=c&secret=s`, /needs tenant/],
  [`${mailbox}?oauth=microsoft&tenant=t&secret=s`, /needs client/],
  [`${mailbox}?oauth=microsoft&tenant=t&client=c`, /one of secret, key and refresh/],
  [`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=`, /secret is empty/],
  [`${mailbox}?oauth=apple&client=c&secret=s`, /oauth is microsoft, google, or/],
  [`${mailbox}?oauth=http://id.acme.com/token&client=c&secret=s`, /oauth is microsoft, google, or/],
  [`${mailbox}?oauth=https://id.acme.com/token%23x&client=c&secret=s`, /oauth is microsoft, google, or/],
  [`${mailbox}?oauth=https://me@id.acme.com/token&client=c&secret=s`, /oauth is microsoft, google, or/],
  [`${mailbox}?oauth=google&key={}`, /JSON file of a service account/],
  [`${mailbox}?oauth=google&client=c&key=nonsense`, /no private key/],
  ['smtp://a%40b.c:pw@mx.acme.com?oauth=google&key={}', /leave the password out/],
  ['smtp://mx.acme.com?oauth=google&client=c&secret=s', /the user is the mailbox/],
  ['smtp://a:b@mx.acme.com?secret=s', /secret needs oauth=/],
  ['smtp://a:b@mx.acme.com?rate=30/h', /30\/m/],
  ['smtp://a:b@mx.acme.com?connections=0', /connections is a whole number above 0/],
  ['smtp://a:b@mx.acme.com?connections=many', /connections is a whole number above 0/],
  [`graph://a@acme.com?tenant=t&client=c&secret=${guid}`, /Secret ID; copy the Value/],
  [`${mailbox}?oauth=microsoft&tenant=t&client=c&secret=s&key=k`, /one of secret, key and refresh/],
  ['smtp://a:b@mx.acme.com?reserved=no', /reserved is send/],
  ['smtp://a:b@mx.acme.com?x%3Fy=1', /unknown option \(connections/],
  ['graph://acme.com?tenant=t&client=c&secret=s', /the mailbox that sends/],
  ['graph://a@acme.com?tenant=t&client=c&secret=s&endpoint=http://graph.test', /endpoint is an https origin/],
  ['graph://a@acme.com?tenant=t&client=c&secret=s&endpoint=https://g.test/v1', /endpoint is an https origin/],
  ['ses://AK@eu-west-1', /ses:\/\/KEYID:SECRET@eu-west-1/],
  ['ses://AK:s@example.com', /ses:\/\/KEYID:SECRET@eu-west-1/],
  ['ses://AK:s/x@eu-west-1', /ses:\/\/KEYID:SECRET@eu-west-1; in a user, password or key/],
  ['resend://re_%E2%80%8B1@api.resend.com', /no part of any key/],
  ['resend://re_1@evil.example', /resend:\/\/KEY@api.resend.com/],
  ['postmark://a:b@api.postmarkapp.com', /the key is the user/],
  ['smtp://a:b@mx.acme.com?envelope=own', /envelope is plain, or left out/],
  ['smtp://a:b@mx.acme.com?deadline=notify', /deadline is return, or left out/],
  ['smtp://a:b@mx.acme.com?provider=acme', /provider is one of postmark, sendgrid, brevo/],
  ...['', 'a b', 'a:299', 'a:50401', 'a:300;b', 'a:300;b:300', 'a:300,b:600', 'a:300;', 'a:1e3', 'x'.repeat(65)].map(
    (set): [string, RegExp] => [`ses://AK:s@eu-west-1?set=${set}`, /set is a configuration set, or several/],
  ),
  ['resend://re_1@api.resend.com?envelope=plain', /unknown option "envelope"/],
  ['imap://a:b@mx.acme.com', /write smtp:/],
]
for (const [url, fault] of wrong)
  test(`${url.replace(guid, 'a GUID')} is refused in words`, () => {
    const text = faultsOf(url)
    assert.match(text, fault)
    assert.doesNotMatch(text, new RegExp(`${guid}|s/x|pw@`))
  })

test('a port of TLS from the first byte needs smtps', () => {
  for (const port of [465, 2465]) {
    assert.match(faultsOf(`smtp://a:b@host:${port}`), /write smtps:/)
    assert.equal(read(`smtps://a:b@host:${port}`).address.protocol, 'smtp')
  }
  assert.equal(read('smtp://a:b@host:587').address.protocol, 'smtp')
})
