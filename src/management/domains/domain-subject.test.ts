import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operator } from '../../../test/support/operator.ts'
import { startTestService, testSettings } from '../../../test/support/service.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { plainRelay, type RelayTraits } from '../../domain/delivery/relay-traits.ts'
import { formatDkimRecord } from '../../domain/dns/dkim-record.ts'
import type { Lookup } from '../../domain/dns/lookup.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { makeSigningKey } from '../../store/crypto/signing-key.ts'
import { checkAppDomain, checkDomains, type DomainParts } from './domain-subject.ts'

const service = await startTestService({ after }, { roles: new Set(['api'] as const) })
const { config, store } = service

const newApp = async (slug: string, address: string, more: Partial<AppSettings> = {}) => {
  const app = await store.createApp(slug, { ...testSettings, from: { name: slug, address }, ...more }, operator)
  assert.ok(app)
  return app
}
const acme = await newApp('acme-mail', 'auth@acme.dev')
await newApp('shop', 'auth@shop.dev')
const key = await makeSigningKey(config.ring, { domain: 'acme.dev', selector: 'p1', algorithm: 'ed25519' })
await store.addSigningKey({ ...key, app: acme.id }, operator)
await store.activateSigningKey({ domain: 'acme.dev', selector: 'p1', app: acme.id }, operator)

const zone: Readonly<Record<string, string>> = {
  'TXT p1._domainkey.acme.dev': formatDkimRecord('ed25519', key.publicKey),
  'TXT acme.dev': 'v=spf1 ip4:192.0.2.1 -all',
  'TXT _dmarc.acme.dev': 'v=DMARC1; p=reject; rua=mailto:d@acme.dev',
  'MX acme.dev': '10 mail.acme.dev',
  'MX bounce.acme.dev': '10 mail.acme.dev',
  'A mail.acme.dev': '192.0.2.1',
}
const lookup: Lookup = async (name, type) => {
  const record = zone[`${type} ${name}`]
  return record === undefined ? { kind: 'absent' } : { kind: 'found', records: [record] }
}
const partsWith = (relayTraits: RelayTraits = plainRelay, bounceAddress: string | null = null): DomainParts => ({
  ...{ store, relayTraits, bounceAddress: bounceAddress as EmailAddress | null },
  newLookup: () => lookup,
})

test('each domain is judged unless it is reserved, and what is wrong is named with the way to its records', async () => {
  const found = await checkDomains(partsWith())
  const [right, reserved, wrong, ...more] = found.toSorted((a, b) => (a.check < b.check ? -1 : 1))
  assert.deepEqual(right, { check: 'domain acme.dev', ok: true, detail: 'keys, SPF, DMARC and MX are right' })
  assert.deepEqual(reserved, {
    ...{ check: 'domain acme.test', ok: true, isSkipped: true },
    detail: 'not checked: reserved for tests and documentation, so its mail goes nowhere',
  })
  assert.deepEqual([wrong?.check, wrong?.ok, more], ['domain shop.dev', false, []])
  assert.match(wrong?.detail ?? '', /^spf: .*no SPF record.* dmarc: .*"postern domain check shop" shows the records\.$/)
})

test('apps of one domain are judged together, and apart if their envelopes differ; disabled ones are not', async (t) => {
  const twin = await newApp('twin', 'info@acme.dev')
  const other = await newApp('apart', 'info@acme.dev', { envelopeFrom: 'bounces@nowhere.dev' })
  t.after(async () => {
    for (const { id } of [twin, other]) await store.updateApp(id, { status: 'disabled' }, operator)
  })
  const ofAcme = async (parts = partsWith()) =>
    (await checkDomains(parts))
      .filter(({ check }) => check.includes('acme.dev'))
      .map(({ check, ok }) => `${check} ${ok}`)
  assert.deepEqual((await ofAcme()).toSorted(), ['domain acme.dev (apart) false', 'domain acme.dev (twin) true'])
  const shared = partsWith(plainRelay, 'b@nowhere.dev')
  assert.deepEqual(await ofAcme(shared), ['domain acme.dev false'], 'all have the same envelopes')
  await store.updateApp(other.id, { status: 'disabled' }, operator)
  assert.deepEqual(await ofAcme(), ['domain acme.dev true'])
})

test('domains and envelopes beyond the bound are named as not checked', async (t) => {
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => newApp(`m${n}`, `info@m${n}.dev`)))
  const envelopes = ['a', 'b', 'c'].map((name) => ({ envelopeFrom: `b@${name}.dev` }))
  const apart = await Promise.all(envelopes.map((more, n) => newApp(`e${n}`, 'info@acme.dev', more)))
  t.after(async () => {
    for (const { id } of [...many, ...apart]) await store.updateApp(id, { status: 'disabled' }, operator)
  })
  const left = (await checkDomains(partsWith())).filter(({ detail }) => /only so many/.test(detail))
  assert.equal(left.length, 1)
  assert.match(left[0]?.check ?? '', /^domain m1[89]\.dev, m1[89]\.dev, \w+$/)
  assert.equal(left[0]?.ok, true)
})

test('the records that a domain needs follow from the relays, the bounce address and the app', async () => {
  const checks = async (parts: DomainParts, app = acme) =>
    (await checkAppDomain(app, parts)).map(({ check, name }) => `${check} ${name}`)
  const spfOf = (names: readonly string[]) => names.find((name) => name.startsWith('spf'))
  const plain = await checks(partsWith(plainRelay, 'b@bounce.acme.dev'))
  assert.ok(plain.includes('dkim p1._domainkey.acme.dev'), plain.join())
  assert.equal(spfOf(plain), 'spf bounce.acme.dev', 'the envelope has the bounce address')
  assert.equal(spfOf(await checks(partsWith({ ...plainRelay, envelope: 'from' }, 'b@bounce.acme.dev'))), 'spf acme.dev')
  const own = { ...acme, settings: { ...acme.settings, envelopeFrom: 'b@own.acme.dev' } }
  assert.equal(spfOf(await checks(partsWith(plainRelay, 'b@bounce.acme.dev'), own)), 'spf own.acme.dev')
  const keeping = partsWith({ ...plainRelay, envelope: 'from' }, 'b@bounce.acme.dev')
  assert.equal(spfOf(await checks(keeping, own)), 'spf own.acme.dev', 'it takes no reference')
  const byRelay = await checks(partsWith({ rewrites: 'all', envelope: 'relay', include: null }))
  assert.equal(spfOf(byRelay), undefined, 'the envelope is the relay’s')
  assert.ok(!byRelay.some((name) => name.startsWith('dkim')), 'and so is the message')
})
