/** Checks the transports that are stored. Sends no email. */
import type { App } from '../../domain/app/app.ts'
import { nameAll } from '../../domain/counts.ts'
import type { Finding, Store } from '../../store/store.ts'
import type { Management, OpenedTransport } from '../context.ts'
import { checkEach } from './check-relay.ts'

export type TransportFacts = {
  readonly store: Pick<Store, 'listApps' | 'listTransports'>
  readonly transports: Pick<Management['transports'], 'open'>
}

export const usersOf = (name: string, apps: readonly App[]): App[] =>
  apps.filter(({ settings }) => settings.transport === name)

/** Those that cannot be used, or are not there, while apps use them. Connects to no relay. */
export async function findTransportFaults({ store, transports }: TransportFacts): Promise<Finding[]> {
  const [stored, apps] = await Promise.all([store.listTransports(), store.listApps()])
  const used = [...new Set(apps.flatMap(({ settings }) => settings.transport ?? []))]
  return used.flatMap((name) => {
    const found = stored.find((one) => one.name === name)
    const [fault] = found === undefined ? [{ text: 'there is no such transport' }] : transports.open(found).faults
    if (fault === undefined) return []
    const users = nameAll(usersOf(name, apps).map(({ slug }) => slug))
    return [{ check: `transport ${name}`, ok: false, detail: `${fault.text}. The mail of ${users} waits` }]
  })
}

/** Whether their relays answer. Those of a transport learn the addresses of its own apps alone. */
export async function checkTransports(
  opened: readonly (OpenedTransport & { readonly name: string })[],
  settings: Parameters<typeof checkEach>[1],
): Promise<Finding[]> {
  const check = ({ name, relays }: (typeof opened)[number]) =>
    checkEach(relays, { ...settings, apps: usersOf(name, settings.apps) })
  return (await Promise.all(opened.map(check))).flat()
}
