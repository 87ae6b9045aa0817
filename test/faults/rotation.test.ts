/** A signing key is rotated under load: no message is signed by a key that the zone of that moment lacks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { dkimName, formatDkimRecord } from '../../src/domain/dns/dkim-record.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { verifySignatures } from '../support/dkim.ts'
import { operator } from '../support/operator.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const rate = 500
/** A slow machine sends fewer, instead of having a queue that grows for as long as the load lasts. */
const queuedMax = 5000
/** Nor does it open thousands of connections at once, of which the system resets some. */
const atOnceMax = 200
/** Longer than workers keep the keys of a domain. */
const keptMs = 31_000

test(`500 emails a second while a key replaces another one, whose record goes a while later`, async (t) => {
  const zone = new Map<string, string>()
  const results = new Map<string, number>()
  const selectors = new Map<string, number>()
  const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  const relay = await startSmtpServer(t, {
    onData(stream, _session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const message = Buffer.concat(chunks)
        for (const result of verifySignatures(message, (name) => zone.get(name))) count(results, result)
        count(selectors, / s=(\w+);/.exec(message.toString('latin1', 0, 400))?.[1] ?? 'unsigned')
        callback(null, 'queued')
      })
    },
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const { app, config, store } = service
  const add = async (selector: string) => {
    const key = await makeSigningKey(config.ring, { domain: 'acme.test', selector, algorithm: 'rsa' })
    await store.addSigningKey({ ...key, app: app.id }, operator)
    zone.set(dkimName(selector, 'acme.test'), formatDkimRecord('rsa', key.publicKey))
    await store.activateSigningKey({ domain: 'acme.test', selector, app: app.id }, operator)
  }
  const limits = { keyPerMinute: 1e9, recipientPerHour: 1e9, daily: 1e9 }
  await store.updateApp(app.id, { settings: { ...app.settings, limits } }, operator)
  await add('old')
  const accepted = new Set<EmailId>()
  const state = { on: true }
  const total = () => [...results.values()].reduce((sum, each) => sum + each, 0)
  const beganMs = performance.now()
  const load = (async () => {
    for (let sent = 0; state.on; ) {
      const due = ((performance.now() - beganMs) / 1000) * rate
      const room = Math.min(Math.floor(due) - sent, queuedMax - (accepted.size - total()), atOnceMax)
      const posts = Array.from({ length: Math.max(0, room) }, async (_, n) => {
        const answer = await service.post(validBody({ to: `r${sent + n}@example.com` }))
        if (answer.status === 202) accepted.add((answer.headers.get('email-id') ?? '') as EmailId)
      })
      sent += posts.length
      await Promise.all([...posts, sleep(20)])
    }
  })()
  await eventually(() => (selectors.get('old') ?? 0) > 500)
  await add('new')
  await sleep(keptMs)
  zone.delete(dkimName('old', 'acme.test'))
  const before = selectors.get('new') ?? 0
  await eventually(() => (selectors.get('new') ?? 0) > before + 500)
  state.on = false
  await load
  await eventually(() => total() >= accepted.size, 240_000)
  t.diagnostic(
    `${accepted.size} emails in ${Math.round((performance.now() - beganMs) / 1000)} s: ${JSON.stringify([...selectors])}`,
  )
  assert.deepEqual([...results.keys()], ['pass'])
  assert.ok((selectors.get('old') ?? 0) > 500 && (selectors.get('new') ?? 0) > 500)
})
