import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'
import { renderChecks } from './checks.ts'

test('images without alternative text, and those that are not over https, are counted', () => {
  const html = [
    '<img class="plate" src="https://acme.test/a.png" alt="Acme">',
    '<img src="https://acme.test/b.png">',
    '<img src="https://acme.test/c.png" alt="">',
    '<img src="http://acme.test/d.png" alt="Acme">',
  ].join('')
  const email = { html, text: 'Sign in', url: 'https://acme.test/auth' } as CapturedEmail
  assert.match(renderChecks(email).text, /4, 2 without alternative text, 1 not over https\./)
})
