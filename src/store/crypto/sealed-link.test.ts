import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { LinkOwner } from '../../domain/app/hosted-link.ts'
import type { AppId } from '../../domain/id.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { type KeyRing, newSecretKey, parseKeyRing, seal } from './key-ring.ts'
import { openLink, sealLink } from './sealed-link.ts'

const ringOf = (...ids: string[]): KeyRing => {
  const parsed = parseKeyRing(ids.map(newSecretKey).join(','))
  assert.ok('ring' in parsed)
  return parsed.ring
}
const ring = ringOf('k20261120')
const app: LinkOwner = { appId: 'app_01m7x4pm530000dj4zwn0hsje3' as AppId, domain: null }
const target = {
  type: 'password_reset' as const,
  destination: `https://app.example.com/auth?token=${'x'.repeat(65)}`,
  expiresAt: 1_795_200_000_000,
}

test('what was sealed opens, under the same app alone', () => {
  const sealed = sealLink(ring, app, target)
  assert.deepEqual(openLink(ring, app, sealed), target)
  assert.equal(openLink(ring, { ...app, appId: 'app_other' as AppId }, sealed), null)
  assert.equal(openLink(ringOf('k20261120'), app, sealed), null)
})

test('what was sealed for a domain opens there alone', () => {
  const there = { ...app, domain: 'links.acme.example' }
  const sealed = sealLink(ring, there, target)
  assert.deepEqual(openLink(ring, there, sealed), target)
  for (const domain of [null, 'links.globex.example', 'acme.example', ''])
    assert.equal(openLink(ring, { ...app, domain }, sealed), null)
  assert.equal(openLink(ring, there, sealLink(ring, app, target)), null)
})

test('the type of the email comes back', () => {
  for (const type of emailTypes) assert.equal(openLink(ring, app, sealLink(ring, app, { ...target, type }))?.type, type)
})

test('the language of the email comes back, and a link without one opens', () => {
  for (const locale of ['de', 'pt-BR', 'zh-Hant']) {
    const sealed = sealLink(ring, app, { ...target, locale })
    assert.deepEqual(openLink(ring, app, sealed), { ...target, locale })
    assert.ok(sealed.length <= sealLink(ring, app, target).length + 12, locale)
  }
  const { destination, expiresAt } = target
  // As an earlier version sealed it.
  const [salt, text] = [randomBytes(12), `2${(expiresAt / 1000).toString(36)}.${destination}`]
  const context = `hosted link ${app.appId} ${salt.toString('base64url')}`
  const old = Buffer.concat([salt, seal(ring, context, text)]).toString('base64url')
  assert.deepEqual(openLink(ring, app, old), target)
})

test('a destination of 100 characters stays under 300', () => {
  assert.equal(target.destination.length, 100)
  assert.ok(sealLink(ring, app, target).length < 260, 'room for a base URL and a slug')
})

test('the same link sealed twice looks like two', () => {
  assert.notEqual(sealLink(ring, app, target), sealLink(ring, app, target))
})

test('the end is never later than the link’s', () => {
  const sealed = sealLink(ring, app, { ...target, expiresAt: 1_795_200_000_999 })
  assert.equal(openLink(ring, app, sealed)?.expiresAt, 1_795_200_000_000)
})

test('rotation: an older key of the ring opens, one that has left it closes', () => {
  const [old, fresh] = [ringOf('old'), ringOf('new')]
  const sealed = sealLink(old, app, target)
  assert.deepEqual(openLink([fresh[0], ...old], app, sealed), target)
  assert.equal(openLink(fresh, app, sealed), null)
})

test('row 47: 100,000 mutations of a sealed link open nothing', () => {
  const sealed = sealLink(ring, app, { ...target, locale: 'de' })
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const position = fc.nat(sealed.length - 1)
  const mutation = fc.oneof(
    fc
      .tuple(position, fc.constantFrom(...alphabet))
      .map(([at, other]) => sealed.slice(0, at) + other + sealed.slice(at + 1)),
    position.map((at) => sealed.slice(0, at) + sealed.slice(at + 1)),
    fc
      .tuple(position, fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 3 }))
      .map(([at, text]) => sealed.slice(0, at) + text + sealed.slice(at)),
    position.map((at) => sealed.slice(0, at)),
    fc.tuple(position, position).map(([a, b]) => sealed.slice(0, a) + sealed.slice(b)),
    fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 300 }),
    fc.string({ unit: 'binary' }),
  )
  fc.assert(
    fc.property(mutation, (text) => {
      if (text !== sealed) assert.equal(openLink(ring, app, text), null, text)
    }),
    { numRuns: 100_000 },
  )
})
