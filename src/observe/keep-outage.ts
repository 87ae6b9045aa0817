/** Adds an outage that this process saw to the record of all processes. */
import { type KeptOutage, recentOutages } from '../domain/delivery/kept-outages.ts'
import type { Store } from '../store/store.ts'

/** Far more than relays have in two hours, unless they come and go all the time. */
const outagesMax = 100
/** Another process may change the record meanwhile. */
const swapsMax = 5

/** @param isOver false: the outage goes on, so it is no longer listed */
export async function keepOutage(
  store: Pick<Store, 'findCheck' | 'swapCheck' | 'now'>,
  outage: KeptOutage,
  isOver: boolean,
): Promise<void> {
  const isSame = ({ from, node, relay }: KeptOutage) =>
    from === outage.from && node === outage.node && relay === outage.relay
  for (let tries = 0; tries < swapsMax; tries++) {
    const kept = await store.findCheck('outages')
    const others = recentOutages(kept, store.now()).filter((one) => !isSame(one))
    const after = [...others, ...(isOver ? [outage] : [])].slice(-outagesMax)
    if (await store.swapCheck('outages', kept?.result ?? null, after)) return
  }
}
