/** Checks the database, the machine that it runs on, and the key ring. */
import { counted } from '../../domain/counts.ts'
import type { AppId } from '../../domain/id.ts'
import { type Finding, type Store, StoreUnavailable } from '../../store/store.ts'
import { findTransportFaults, type TransportFacts } from './check-transports.ts'

export type StoreFacts = TransportFacts & {
  readonly store: Pick<Store, 'examine' | 'listMissingKeys' | 'listReceivers' | 'listSigningKeys' | 'probeWrite'>
  /** The id of the ring key that sealed something; null if the ring has it. */
  readonly lacksKey: (sealed: string) => string | null
  /** Null if no alerts are posted. */
  readonly checkAlerts: (() => Promise<Finding>) | null
}

/** The status judges these findings as well. */
export async function examineStore(facts: StoreFacts): Promise<readonly Finding[]> {
  const [writes, own, keys] = await Promise.all([checkWrites(facts.store), facts.store.examine(), checkKeys(facts)])
  const transports = await findTransportFaults(facts)
  const alerts = facts.checkAlerts === null ? [] : [await facts.checkAlerts()]
  return [
    writes,
    ...own.map((finding) => (writes.ok ? finding : withoutWrites(finding))),
    keys,
    ...transports,
    ...alerts,
  ]
}

/** A process that cannot record what it sends does not send. */
const withoutWrites = (finding: Finding): Finding =>
  finding.check === 'worker' && finding.ok
    ? { ...finding, ok: false, detail: 'nothing is sent while the database cannot be written' }
    : finding

async function checkWrites({ probeWrite }: StoreFacts['store']): Promise<Finding> {
  const check = 'writes'
  try {
    await probeWrite()
    return { check, ok: true, detail: 'the database takes a write' }
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return { check, ok: false, detail: error.message }
  }
}

async function checkKeys({ store, lacksKey }: StoreFacts): Promise<Finding> {
  const waiting = new Map<string, string[]>()
  const note = (keyId: string, what: string) => waiting.set(keyId, [...(waiting.get(keyId) ?? []), what])
  for (const { emails, keyId } of await store.listMissingKeys()) note(keyId, counted(emails, 'email'))
  for (const { domain, sealed, selector, state } of await store.listSigningKeys(null)) {
    const keyId = state === 'retired' ? null : lacksKey(sealed)
    if (keyId !== null) note(keyId, `the mail of ${domain}, which ${selector} signs`)
  }
  const webhooks = new Map<string, AppId[]>()
  for (const { app, sealed } of await store.listReceivers()) {
    const keyId = lacksKey(sealed)
    if (keyId !== null) webhooks.set(keyId, [...(webhooks.get(keyId) ?? []), app])
  }
  for (const [keyId, apps] of webhooks) note(keyId, `the webhooks of ${counted(apps.length, 'app')}`)
  const check = 'keys'
  if (waiting.size === 0) return { check, ok: true, detail: 'the key ring opens what waits for it' }
  const missing = [...waiting].map(([keyId, what]) => `${what.join(', ')} wait for the key "${keyId}"`)
  const detail = `${missing.join('; ')}. POSTERN_SECRET_KEYS lacks it: put it back and restart. Emails are then sent at once, unless their links have expired`
  return { check, ok: false, detail }
}

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
