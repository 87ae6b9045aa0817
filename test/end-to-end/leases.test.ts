/** A worker of its own on a real store and a real relay: what becomes of a lease that was lost. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { SmtpRelay } from '../../src/delivery/relay/smtp/smtp-relay.ts'
import { Worker } from '../../src/delivery/worker/worker.ts'
import type { PosternEvent } from '../../src/observe/events.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

test('after the store has said that a lease is lost, the message is not handed over', async (t) => {
  const waiting: Socket[] = []
  const server = await startScriptedServer(t, { data: (socket) => void waiting.push(socket) })
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store, app } = service
  const relay = new SmtpRelay({ ...relayTo(server.port), random: Math.random, onChange: () => {} })
  const events: PosternEvent[] = []
  const renewals: number[] = []
  const worker = new Worker({
    store: {
      claimDue: store.claimDue,
      recordOutcome: store.recordOutcome,
      renewLeases: async (leases) => {
        const lost = await store.renewLeases(leases)
        renewals.push(lost.length)
        return lost
      },
    },
    relays: [relay],
    random: Math.random,
    emit: (event) => void events.push(event),
    renewEveryMs: 20,
  })
  assert.equal((await service.post(validBody())).status, 202)
  worker.start()
  atEnd(t, () => worker.stop(0))
  await eventually(() => waiting.length === 1)
  await store.deleteApp(app.id)
  assert.equal(await store.cancelDeletedAppMail(app.id), 1)
  await eventually(() => renewals.includes(1))
  waiting[0]?.write('354 go on\r\n')
  await eventually(() => events.some(({ kind }) => kind === 'outcome_unconfirmed'))
  assert.deepEqual(server.messages, [])
})
