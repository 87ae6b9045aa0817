/** Runs the store's maintenance: one step a second, and the next step soon while there is more to do. */
import type { Emit } from '../observe/events.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

const everyMs = 1000
const nextStepMs = 20

/** Returns a function that stops it. */
export function startMaintenance(store: Pick<Store, 'maintain'>, emit: Emit): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  const step = async () => {
    const more = await maintainOnce(store, emit)
    if (!stopped) timer = setTimeout(step, more ? nextStepMs : everyMs)
  }
  timer = setTimeout(step, everyMs)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

async function maintainOnce(store: Pick<Store, 'maintain'>, emit: Emit): Promise<boolean> {
  try {
    const { more, ended } = await store.maintain()
    if (ended.length > 0) emit({ kind: 'emails_ended', ended })
    return more
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) emit({ kind: 'bug', doing: 'maintaining the store', error })
    return false
  }
}
