/** Runs the store's maintenance: one step a second, and the next step soon while there is more to do. */
import type { Emit } from '../observe/events.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

const everyMs = 1000
const nextStepMs = 20

/** Returns a function that stops it, after the step in progress. */
export function startMaintenance(store: Pick<Store, 'maintain'>, emit: Emit): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let running: Promise<void> = Promise.resolve()
  const step = async () => {
    const more = await maintainOnce(store, emit)
    if (!stopped) schedule(more ? nextStepMs : everyMs)
  }
  const schedule = (waitMs: number) => {
    timer = setTimeout(() => {
      running = step()
    }, waitMs)
  }
  schedule(everyMs)
  return () => {
    stopped = true
    clearTimeout(timer)
    return running
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
