/** The relay of dev mode, where an email that is submitted again counts as a new one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testMessage } from '../../../test/support/smtp.ts'
import type { EmailId } from '../../domain/id.ts'
import { CaptureRelay } from './capture-relay.ts'

test('an email that is captured again comes last: a wait gives those before it first', async () => {
  const relay = new CaptureRelay()
  for (const name of ['em_a', 'em_b', 'em_a']) {
    const id = name as EmailId
    const details = {
      ...{ id, app: 'Acme', slug: 'acme', type: 'magic_link' as const, url: 'https://acme.test/?token=x' },
      ...{ from: { name: 'Acme', address: 'auth@acme.test' }, replyTo: null, headers: [] },
      ...{ subject: 'x', html: '', text: '', language: 'en' as const, code: null, expiresAt: 0 },
    }
    await relay.submit(testMessage({ id, describe: () => details }))
  }
  const order = relay.list().map(({ id, seq }) => [id, seq])
  assert.deepEqual(order, [
    ['em_a', 3],
    ['em_b', 2],
  ])
  const oldest = await relay.wait(() => true, new AbortController().signal)
  assert.equal(oldest?.id, 'em_b')
})
