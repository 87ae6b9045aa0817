/** Runs the store's upkeep: a step a second, and at once again while there is more to do. */
import { type Store, StoreUnavailable } from '../store/store.ts'

const everyMs = 1000
const nextStepMs = 20

export function startMaintenance(
  store: Pick<Store, 'maintain'>,
  onTrouble: (message: string, error: unknown) => void,
): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  const step = async () => {
    const more = await store.maintain().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable)) onTrouble('upkeep of the store failed: a bug', error)
      return false
    })
    if (!stopped) timer = setTimeout(step, more ? nextStepMs : everyMs)
  }
  timer = setTimeout(step, everyMs)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
