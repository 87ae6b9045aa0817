/** Changes of emails by an operator: retry one or all deferred ones now, or cancel one. */
import type { AppId, EmailId } from '../domain/id.ts'
import type { EmailChange, EmailRecord, Store } from '../store/store.ts'
import { findEmail } from './find-email.ts'
import { type Result, refuse } from './result.ts'

type EmailStore = Pick<Store, 'findEmail' | 'retryEmail' | 'cancelEmail'>

export const retryEmail = (store: EmailStore, id: string) =>
  change(store, id, () => store.retryEmail(id as EmailId))

export const cancelEmail = (store: EmailStore, id: string) =>
  change(store, id, () => store.cancelEmail(id as EmailId))

/** Tries each email that is deferred now, of one app or of all. Returns how many. */
export async function retryAll(store: Pick<Store, 'retryDeferred'>, app: AppId | null): Promise<number> {
  let step = await store.retryDeferred(app, null)
  let total = step.retried
  while (step.next !== null) {
    step = await store.retryDeferred(app, step.next)
    total += step.retried
  }
  return total
}

const refusals: Record<Exclude<EmailChange, 'done' | 'not_found'>, string> = {
  finished: 'it has ended, and its content is deleted; ask the app to send a new email',
  sending:
    'a worker is sending it. Try again in a minute; if no "postern serve" runs, start one: it takes the email back',
  not_deferred: 'it is not deferred; it waits for a worker already',
}

async function change(
  store: EmailStore,
  id: string,
  make: () => Promise<EmailChange>,
): Promise<Result<EmailRecord>> {
  const result = await make()
  const email = await findEmail(store, id)
  if (!email.ok || result === 'done' || result === 'not_found') return email
  return refuse('conflict', `${id} was not changed: ${refusals[result]}`)
}
