/** Checks the database, the machine and the relays. Sends no email. */
import { Type } from 'typebox'
import type { Finding, Store } from '../../store/store.ts'
import { operation } from '../operation.ts'
import { FindingResource } from '../resources.ts'
import { done } from '../result.ts'

export const runChecks = operation({
  method: 'POST',
  path: '/v1/checks',
  role: 'operator',
  target: 'service',
  summary: 'Checks database, disk, worker and relays from the process that answers. Takes up to 30 s.',
  answer: Type.Object(
    { ok: Type.Boolean(), findings: Type.Array(FindingResource) },
    { additionalProperties: false },
  ),
  async run({ store, access, checkRelays }) {
    const findings = [...(await checkDatabase(store)), ...(await checkRelays())]
    await store.recordAction(
      { action: 'checks.run', app: null, target: 'service', before: null, after: null },
      access.actor,
    )
    return done({
      ok: findings.every(({ ok }) => ok),
      findings: findings.map(({ check, ok, detail }) => ({ check, ok, detail })),
    })
  },
})

export async function checkDatabase(
  store: Pick<Store, 'queueGauge' | 'listApps' | 'examine'>,
): Promise<Finding[]> {
  const { depth } = await store.queueGauge()
  const apps = (await store.listApps()).length
  return [
    { check: 'database', ok: true, detail: `opens, durable; ${depth} emails wait or are being sent` },
    ...(await store.examine()),
    { check: 'apps', ok: true, detail: apps === 0 ? 'none yet; "postern app create" makes one' : `${apps}` },
  ]
}
