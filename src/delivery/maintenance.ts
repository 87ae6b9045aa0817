/**
 * Runs the store's maintenance: a step every five seconds, and the next step soon while there is more to do.
 * Says which keys mail waits for, and makes deferred mail due after the clock was set back.
 */
import { minuteMs } from '../domain/duration.ts'
import type { EmailId } from '../domain/id.ts'
import type { Emit } from '../observe/events.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

const everyMs = 5000
const nextStepMs = 20
/** Between two looks for mail that waits for a key. */
const keysEveryMs = 10_000

/** A clock that was set back by more moves the next attempts too far away. */
const setBackMinMs = minuteMs

type MaintainedStore = Pick<Store, 'listMissingKeys' | 'maintain' | 'now' | 'retryDeferred'>

/** Returns a function that stops it. */
export function startMaintenance(store: MaintainedStore, emit: Emit): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  let keysAtMs = Number.NEGATIVE_INFINITY
  let missing: ReadonlySet<string> = new Set()
  const hasBeenSetBack = watchClock(store)
  const step = async () => {
    let waitMs = everyMs
    try {
      if (hasBeenSetBack()) await retryAllDeferred(store)
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

/** Says whether the clock was set back since the last call. */
function watchClock({ now }: Pick<MaintainedStore, 'now'>): () => boolean {
  const read = () => ({ monotonicMs: performance.now(), wallMs: now() })
  let last = read()
  return () => {
    const [before, current] = [last, read()]
    last = current
    return current.monotonicMs - before.monotonicMs - (current.wallMs - before.wallMs) > setBackMinMs
  }
}

async function retryAllDeferred(store: MaintainedStore): Promise<void> {
  let after: EmailId | null = null
  do ({ next: after } = await store.retryDeferred(null, after, null))
  while (after !== null)
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
