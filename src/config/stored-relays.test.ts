import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStoredRelays } from './stored-relays.ts'

const dnsServers = ['192.0.2.53']

const faultOf = (url: string, allowsPrivate = false): string =>
  parseStoredRelays([url], { allowsPrivate, dnsServers })
    .faults.map(({ text }) => text)
    .join('; ')

test('the relays of providers are taken as in POSTERN_SMTP_URL, and looked up for each connection', () => {
  const urls = [
    'smtp://user:p%40ss@smtp.acme.example:2525?rate=14',
    'smtps://smtp.acme.example',
    'smtp://93.184.216.34',
    'smtp://a%40acme.com@smtp.office365.com?oauth=microsoft&tenant=t&client=c&secret=s',
    'graph://no-reply@acme.com?tenant=t&client=c&secret=s',
  ]
  const { faults, relays } = parseStoredRelays(urls, { allowsPrivate: false, dnsServers })
  assert.deepEqual(faults, [])
  for (const { address } of relays.slice(0, 4))
    assert.deepEqual(address.protocol === 'smtp' && address.publicOnly, { dnsServers })
  const [allowed] = parseStoredRelays(['smtp://127.0.0.1:1'], { allowsPrivate: true, dnsServers }).relays
  assert.ok(allowed?.address.protocol === 'smtp' && allowed.address.publicOnly === undefined)
})

test('a stored URL names no file, however it is written', () => {
  const oauth = 'smtp://a%40b.test@smtp.acme.example?oauth=google&key='
  for (const url of [
    `${oauth}file:/etc/passwd`,
    `${oauth}%66ile:/etc/passwd`,
    `${oauth}fil%65%3A/etc/passwd`,
    'smtp://smtp.acme.example?ca=/etc/passwd',
    'resend://file%3A%2Fetc%2Fpasswd@api.resend.com',
    'smtp://u:file%3A%2Fetc%2Fpasswd@smtp.acme.example',
    'graph://no-reply@acme.com?tenant=t&client=c&secret=file:/etc/passwd',
  ])
    for (const allowsPrivate of [false, true])
      assert.match(faultOf(url, allowsPrivate), /names no files of the server/, url)
})

test('a stored URL leads into no private network, unless that is allowed', () => {
  const hosts = [
    '127.0.0.1',
    '[::1]',
    '10.0.0.1',
    '[::ffff:10.0.0.1]',
    '169.254.169.254',
    '[fd00::1]',
    'localhost',
    'mailpit',
  ]
  for (const host of [...hosts, '0x7f000001', '2130706433'])
    assert.match(faultOf(`smtp://${host}:587?tls=starttls`), /not on the public Internet/, host)
  const others = [
    'smtp://10.0.0.1?tls=none',
    'resend://key@api.resend.com?endpoint=https://10.0.0.1',
    'smtp://a%40b.test@smtp.acme.example?oauth=https://10.0.0.1/token&client=c&secret=s',
  ]
  for (const url of others) {
    assert.match(faultOf(url), /POSTERN_TRANSPORTS_PRIVATE=yes/, url)
    assert.equal(/POSTERN_TRANSPORTS_PRIVATE/.test(faultOf(url, true)), false, url)
  }
})

test('an option that is given twice is refused, since the second one would escape the check', () => {
  const known = 'oauth=google&oauth=http://127.0.0.1:9200/x&client=c&secret=s'
  for (const url of [`smtp://a%40b.test@smtp.acme.example?${known}`, `graph://no-reply@acme.com?tenant=t&${known}`])
    assert.match(faultOf(url), /oauth is given more than once/)
  assert.match(
    faultOf('resend://key@api.resend.com?endpoint=https://a.test&endpoint=https://10.0.0.1'),
    /more than once/,
  )
})

test('a space in a URL is refused, since spaces part the URLs where they are stored', () => {
  for (const url of [
    'smtp://u:p@smtp.acme.example ',
    'smtp://u:p q@smtp.acme.example',
    'smtp://u:p\t@smtp.acme.example',
  ])
    assert.match(faultOf(url), /there is a space in its URL/)
})

test('a host that no endpoint can have is a fault', () => {
  assert.match(faultOf('ses://AKID:secret@%20x'), /write ses:/)
})

test('no fault repeats any part of a URL, and the list is bounded', () => {
  const secret = 'hunter2hunter2'
  for (const url of [
    `smtp://u:${secret}@ x`,
    `ftp://${secret}@x`,
    `smtp://u:${secret}@10.0.0.1`,
    `${secret}`,
    `smtp://x?${secret}=1`,
  ])
    assert.ok(!faultOf(url).includes(secret) && faultOf(url) !== '', url)
  assert.match(faultOf(`smtp://u:${'x'.repeat(9000)}@smtp.acme.example`), /more than 8192 characters/)
  const six = Array.from({ length: 6 }, () => 'smtp://smtp.acme.example')
  assert.match(
    parseStoredRelays(six, { allowsPrivate: false, dnsServers }).faults[0]?.text ?? '',
    /6 relays; a transport has at most 5/,
  )
  assert.match(parseStoredRelays([], { allowsPrivate: false, dnsServers }).faults[0]?.text ?? '', /at least one/)
})
