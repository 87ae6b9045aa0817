import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId } from '../id.ts'
import {
  checkSenderDomains,
  parseSenderDomain,
  proofRecord,
  senderDomainsMax,
  withAddressDomains,
} from './sender-domains.ts'

const from = (address: string) => ({ from: { name: 'Acme', address } })
const faults = (address: string, senderDomains: readonly string[], envelopeFrom?: string) =>
  checkSenderDomains({ ...from(address), senderDomains, ...(envelopeFrom && { envelopeFrom }) }).map(
    ({ code, field }) => `${field} ${code}`,
  )

test('addresses are in a sender domain exactly: neither above nor below it, nor beside it', () => {
  assert.deepEqual(faults('a@acme.example', ['acme.example']), [])
  for (const address of [
    ...['a@shop.example', 'a@login.acme.example', 'a@example', 'a@evil-acme.example', 'a@acme.example.evil.example'],
    ...['a@acme.exampl', 'a@xn--acm-tdd.example', 'a@acmе.example'],
  ])
    assert.deepEqual(faults(address, ['acme.example']), address === 'a@example' ? [] : ['from.address foreign_domain'])
  assert.deepEqual(faults('a@acme.example', ['acme.example'], 'b@shop.example'), ['envelopeFrom foreign_domain'])
  assert.deepEqual(faults('a@acme.example', []), ['from.address foreign_domain'])
})

test('one domain has one form, however it is written', () => {
  for (const address of ['a@ACME.example', 'a@ａcme.example']) assert.deepEqual(faults(address, ['acme.example']), [])
  assert.deepEqual(parseSenderDomain('ACME.Example'), { ok: true, value: 'acme.example' })
  assert.deepEqual(parseSenderDomain('faß.de'), { ok: true, value: 'xn--fa-hia.de' })
})

test('what is no domain of somebody’s own is refused', () => {
  const codes = ['', 'acme', 'a@b.example', 'acme.example.', '*.acme.example', 'acme .example', 'co.uk', 'com'].map(
    (text) => {
      const parsed = parseSenderDomain(text)
      return parsed.ok ? 'ok' : parsed.issues[0]?.code
    },
  )
  assert.deepEqual(codes, [...Array(6).fill('malformed_domain'), 'public_suffix', 'malformed_domain'])
})

test('an admin gives domains by setting addresses; an app has a few', () => {
  const sender = { ...from('a@b.example'), envelopeFrom: 'x@c.example', senderDomains: ['a.example'] }
  assert.deepEqual(withAddressDomains(sender), ['a.example', 'b.example', 'c.example'])
  assert.deepEqual(withAddressDomains({ ...from('no address'), senderDomains: [] }), [])
  const many = Array.from({ length: senderDomainsMax + 1 }, (_, n) => `d${n}.example`)
  assert.deepEqual(faults('a@d1.example', many), ['senderDomains too_many'])
  assert.deepEqual(faults('a@d1.example', many.slice(1)), [])
})

test('a proof names one domain and one app', () => {
  const id = 'app_1' as AppId
  assert.deepEqual(proofRecord(id, 'acme.example'), {
    name: '_postern.acme.example',
    value: 'postern-app=app_1',
  })
})
