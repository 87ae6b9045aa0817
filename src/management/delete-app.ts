/** Deletes an app and its keys, and cancels its queued mail. */
import type { App } from '../domain/app/app.ts'
import type { Store } from '../store/store.ts'

type AppStore = Pick<Store, 'deleteApp' | 'cancelDeletedAppMail' | 'queueSummary'>

/** How many emails of the app would be cancelled. */
export async function countQueued(store: Pick<Store, 'queueSummary'>, { id }: App): Promise<number> {
  const { counts } = await store.queueSummary()
  return counts.filter(({ app }) => app === id).reduce((sum, { count }) => sum + count, 0)
}

/** Returns how many emails were cancelled. */
export async function deleteApp(store: AppStore, { id }: App): Promise<number> {
  await store.deleteApp(id)
  let cancelled = 0
  for (;;) {
    const step = await store.cancelDeletedAppMail(id)
    if (step === 0) return cancelled
    cancelled += step
  }
}
