/**
 * Runs the store's maintenance: one step a second, and the next step soon while there is more to do. Says
 * which keys mail waits for.
 */
import type { Emit } from '../observe/events.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

const everyMs = 1000
const nextStepMs = 20
/** Between two looks for mail that waits for a key. */
const keysEveryMs = 10_000

type MaintainedStore = Pick<Store, 'maintain' | 'listMissingKeys'>

/** Returns a function that stops it. */
export function startMaintenance(store: MaintainedStore, emit: Emit): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  let keysAtMs = Number.NEGATIVE_INFINITY
  let missing: ReadonlySet<string> = new Set()
  const step = async () => {
    let waitMs = everyMs
    try {
      const { more, ended } = await store.maintain()
      if (ended.length > 0) emit({ kind: 'emails_ended', ended })
      if (more) waitMs = nextStepMs
      else if (performance.now() >= keysAtMs) {
        keysAtMs = performance.now() + keysEveryMs
        missing = await tellMissing(store, missing, emit)
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) emit({ kind: 'bug', doing: 'maintaining the store', error })
    }
    if (!stopped) timer = setTimeout(step, waitMs)
  }
  timer = setTimeout(step, everyMs)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** Emits an event for each key that was not missing before. */
async function tellMissing(
  store: MaintainedStore,
  before: ReadonlySet<string>,
  emit: Emit,
): Promise<ReadonlySet<string>> {
  const keys = await store.listMissingKeys()
  for (const key of keys) if (!before.has(key.keyId)) emit({ kind: 'key_missing', ...key })
  return new Set(keys.map(({ keyId }) => keyId))
}
