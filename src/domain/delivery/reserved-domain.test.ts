import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isReservedDomain } from './reserved-domain.ts'

test('reserved domains, and those below them', () => {
  for (const domain of [
    'a.test',
    'test',
    'x.example',
    'b.INVALID',
    'localhost',
    'a.localhost',
    'example.com',
    'Mail.Example.ORG',
    'x.y.example.net',
  ])
    assert.equal(isReservedDomain(`ada@${domain}`), true, domain)
})

test('domains that only look alike are not', () => {
  for (const domain of [
    'example.co',
    'notexample.com',
    'example.com.de',
    'test.com',
    'example.io',
    'acme.local',
    'a.internal',
    'home.arpa',
    'x.onion',
    'latest',
  ])
    assert.equal(isReservedDomain(`ada@${domain}`), false, domain)
  assert.equal(isReservedDomain('"a@example.com"@acme.com'), false)
})
