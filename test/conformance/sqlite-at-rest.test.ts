/**
 * Content in the database file is always sealed, and is deleted once an email is finished. The test
 * reads the ciphertext, since the plaintext is never in the file.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { EndState } from '../../src/domain/delivery/states.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { listEmails, operator } from '../support/operator.ts'
import { startTestService, validBody } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'

const canary = {
  to: 'canary-recipient@example.com',
  url: 'https://app.acme.test/?token=canary-token',
  organisationName: 'canary-organisation',
  inviterName: 'canary-inviter',
}

type Ending = (service: Awaited<ReturnType<typeof startTestService>>) => Promise<unknown>

const endings: Record<Exclude<EndState, 'suppressed'>, Ending> = {
  delivered: (service) => finish(service, { kind: 'delivered', reply: parseReply('250 ok'), relay: 'r' }),
  failed: (service) =>
    finish(service, {
      kind: 'failed',
      reply: parseReply('550 no'),
      relay: 'r',
      reason: 'refused_by_relay',
    }),
  expired: async (service) => {
    service.advance(3_600_000)
    await service.store.claimDue({ max: 9, perApp: 9, leases: [] })
  },
  cancelled: async (service) => {
    for (const email of await listEmails(service.store, { limit: 9 }))
      await service.store.cancelEmail(email.id, operator)
  },
}

type Outcome = Parameters<Awaited<ReturnType<typeof startTestService>>['store']['recordOutcome']>[1]

async function finish(
  service: Awaited<ReturnType<typeof startTestService>>,
  outcome: Outcome,
): Promise<void> {
  const { claims } = await service.store.claimDue({ max: 9, perApp: 9, leases: [] })
  for (const claim of claims) await service.store.recordOutcome(claim, outcome)
}

for (const [state, end] of Object.entries(endings)) {
  test(`an email that is ${state} leaves no content, sealed or not`, async (t) => {
    const path = join(temporaryFolder(t), 'postern.db')
    const database = { engine: 'sqlite', path } as const
    const service = await startTestService(t, { roles: new Set(['api'] as const), database })
    const headers = { 'idempotency-key': 'canary-idempotency-key' }
    assert.equal(
      (await service.post(validBody({ ...canary, type: 'organisation_invite' }), headers)).status,
      202,
    )
    const sealed = () => {
      const reader = new Connection(path, { readOnly: true })
      const rows = reader.sql('select sealed from queue').all()
      reader.close()
      return rows.map((row) => Buffer.from(row.sealed as Uint8Array))
    }
    const [ciphertext, ...more] = sealed()
    assert.ok(ciphertext !== undefined && more.length === 0)
    await end(service)
    assert.deepEqual(
      (await listEmails(service.store, { limit: 9 })).map((email) => email.state),
      [state],
    )
    assert.deepEqual(sealed(), [])
    for (const file of [path, `${path}-wal`])
      assert.doesNotMatch(readFileSync(file, 'latin1'), /canary/, file)
  })
}
