/**
 * `kill -9` at random moments under load, the service started again each time: every 202 is
 * accounted for, and an email is received more than once only where one of its attempts ended
 * without a record. POSTERN_KILLS sets how many (200).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/compose.ts'
import { parseConfig } from '../../src/config.ts'
import type { EmailId } from '../../src/email/id.ts'
import { type RunningPostern, spawnServe, startServe } from '../support/cli.ts'
import { validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const kills = Number(process.env.POSTERN_KILLS ?? 200)
const clients = 8

test(`${kills} kills under load: nothing acknowledged is lost, duplicates only after ambiguous attempts`, async (t) => {
  const relay = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const current = { server: server as Omit<RunningPostern, 'key'> }
  const acknowledged = new Set<EmailId>()
  const load = { on: true }
  const loads = Array.from({ length: clients }, (_, client) => sendSteadily(client))
  const begun = performance.now()
  for (let kill = 0; kill < kills; kill++) {
    await sleep(20 + Math.random() * 250)
    const ended = once(current.server.child, 'exit')
    current.server.child.kill('SIGKILL')
    await ended
    current.server = await spawnServe(t, server.env)
  }
  load.on = false
  await Promise.all(loads)
  t.diagnostic(
    `${kills} kills in ${Math.round((performance.now() - begun) / 1000)} s; ${acknowledged.size} emails acknowledged`,
  )

  async function sendSteadily(client: number): Promise<void> {
    for (let i = 0; load.on; i++) {
      const body = JSON.stringify(
        validBody({
          to: `c${client}n${i}@example.com`,
          expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        }),
      )
      const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }
      try {
        const response = await fetch(`${current.server.api}/v1/email`, { method: 'POST', headers, body })
        const id = response.headers.get('email-id') as EmailId | null
        if (response.status === 202 && id !== null) acknowledged.add(id)
      } catch {
        await sleep(20) // killed: not acknowledged
      }
    }
  }

  const store = await openStore(parseConfig(server.env, 'command'), { onRuin: assert.fail })
  atEnd(t, () => store.close())
  // What was in hand at a kill comes back when its lease of 60 s has lapsed.
  await eventually(async () => (await store.queueGauge()).depth === 0, 240_000)

  const copies = new Map<string, number>()
  for (const { raw } of relay.received) {
    const id = /^X-Entity-Ref-ID: (\S+)/m.exec(raw)?.[1] ?? ''
    copies.set(id, (copies.get(id) ?? 0) + 1)
  }
  let duplicates = 0
  for (const id of acknowledged) {
    const record = await store.findEmail(id)
    assert.equal(record?.state, 'delivered', id)
    const received = copies.get(id) ?? 0
    const unclear = record.trail.filter(
      (attempt) => attempt.outcome === 'lost' || attempt.ambiguous === true,
    ).length
    assert.ok(received >= 1, `${id} was acknowledged and never received`)
    assert.ok(received <= 1 + unclear, `${id}: ${received} copies, ${unclear} ambiguous attempts`)
    duplicates += received - 1
  }
  t.diagnostic(
    `${acknowledged.size} acknowledged, ${acknowledged.size} delivered, 0 lost, ${duplicates} duplicates`,
  )
  assert.ok(acknowledged.size >= kills, 'the load was real')
})
