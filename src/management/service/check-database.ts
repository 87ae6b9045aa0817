/** Checks the database and the machine that it runs on. */
import { counted } from '../../domain/counts.ts'
import type { Finding, Store } from '../../store/store.ts'

export async function checkDatabase(
  store: Pick<Store, 'readQueueGauge' | 'listApps'>,
  examine: () => Promise<readonly Finding[]>,
): Promise<Finding[]> {
  const { depth } = await store.readQueueGauge()
  const apps = (await store.listApps()).length
  return [
    {
      check: 'database',
      ok: true,
      detail: `opens, durable; ${counted(depth, 'email')} waiting or being sent`,
    },
    ...(await examine()),
    { check: 'apps', ok: true, detail: apps === 0 ? 'no app yet' : `${apps}` },
  ]
}
