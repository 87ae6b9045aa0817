import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { readGreetingName } from './greeting.ts'
import { newReader } from './reader.ts'
import { parseRelayUrl } from './relay-url.ts'
import { readRelayDefaults, readRelays } from './relays.ts'

const links = 'https://links.acme.test/mail'
const bounces = 'bounces@bounce.acme.test'

const nameOf = (machine: string, linksBaseUrl: string | null, bounceAddress: string | null) =>
  readGreetingName(
    newReader({}, 'serve', []),
    { linksBaseUrl, bounceAddress: bounceAddress as EmailAddress | null },
    machine,
  )

for (const [machine, linksUrl, bounce, name] of [
  ['mail.acme.test', links, bounces, 'mail.acme.test'],
  ['Mail.Acme.Test.', links, bounces, 'mail.acme.test'],
  ['ip-10-0-0-7.eu-west-1.compute.internal', links, bounces, 'ip-10-0-0-7.eu-west-1.compute.internal'],
  ['0a1b2c3d4e5f', links, bounces, 'links.acme.test'],
  ['localhost', links, null, 'links.acme.test'],
  ['localhost.localdomain', links, null, 'links.acme.test'],
  ['box.localdomain', null, bounces, 'bounce.acme.test'],
  ...[
    'macbook.local',
    'box.lan',
    'x.home.arpa',
    'web.default.svc.cluster.local',
    'host.invalid',
    'localhost6.localdomain6',
  ].map((machine) => [machine, links, null, 'links.acme.test'] as const),
  ['10.0.0.7', 'http://127.0.0.1:4021', bounces, 'bounce.acme.test'],
  ['my_box.acme.test', 'https://links:8443', bounces, 'bounce.acme.test'],
  ['', 'https://bücher.test/x', null, 'xn--bcher-kva.test'],
  ['box', null, null, null],
  ['box', 'http://[::1]:4021', null, null],
] as const)
  test(`a machine "${machine}" with ${linksUrl} and ${bounce} greets as ${name}`, () => {
    assert.equal(nameOf(machine, linksUrl, bounce), name)
  })

test('POSTERN_SMTP_NAME is the name of all relays, and `name` that of one', () => {
  const env = {
    POSTERN_SMTP_NAME: 'Post.Acme.Test',
    POSTERN_SMTP_URL: 'smtp://a.test smtps://b.test?name=b.acme.test ses://K:S@eu-west-1',
  }
  const faults: string[] = []
  const reader = newReader(env, 'serve', faults)
  const greetingName = readGreetingName(reader, { linksBaseUrl: links, bounceAddress: null })
  const names = readRelays(reader, readRelayDefaults(reader, greetingName), { sends: true }).map(({ address }) =>
    address.protocol === 'smtp' ? address.greetingName : 'no SMTP',
  )
  assert.deepEqual([names, faults], [['post.acme.test', 'b.acme.test', 'no SMTP'], []])
})

for (const name of ['box', '127.0.0.1', '[127.0.0.1]', 'localhost.localdomain', 'a b.test', 'a_b.test', 'a..test'])
  test(`the name "${name}" is refused, in the setting and in a URL`, () => {
    const faults: string[] = []
    readGreetingName(newReader({ POSTERN_SMTP_NAME: name }, 'serve', faults), {
      linksBaseUrl: null,
      bounceAddress: null,
    })
    assert.match(faults.join(), /^POSTERN_SMTP_NAME must be a host name with a dot/)
    assert.match(
      parseRelayUrl(`smtp://a.test?name=${encodeURIComponent(name)}`).faults.join(),
      /^name must be a host name/,
    )
  })
