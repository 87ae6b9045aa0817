/** Lists emails by app, state and recipient, newest first. */
import type { EmailState } from '../domain/delivery/states.ts'
import { parseEmailAddress } from '../domain/request/email-address.ts'
import type { EmailQuery, EmailRecord, Store } from '../store/store.ts'
import { findApp } from './find-app.ts'
import { done, type Result, refuse } from './result.ts'

export type EmailFilter = {
  readonly app?: string
  readonly state?: EmailState
  readonly to?: string
  readonly limit: number
}

export type EmailList = {
  readonly emails: readonly EmailRecord[]
  /** The slug of an app, or its id if the app has been deleted. */
  readonly nameOf: (email: EmailRecord) => string
}

export async function listEmails(
  store: Pick<Store, 'findApp' | 'listApps' | 'listEmails'>,
  { app, state, to, limit }: EmailFilter,
): Promise<Result<EmailList>> {
  const address = to === undefined ? undefined : parseEmailAddress(to, '--to')
  if (address?.ok === false) return refuse('invalid', `--to: ${address.issues[0]?.message}`)
  const found = app === undefined ? undefined : await findApp(store, app)
  if (found?.ok === false) return found
  const query: EmailQuery = {
    limit,
    ...(found && { app: found.value.id }),
    ...(state && { state }),
    ...(address && { to: address.value }),
  }
  const emails = await store.listEmails(query)
  const slugs = new Map((await store.listApps()).map(({ id, slug }) => [id, slug]))
  return done({ emails, nameOf: (email) => slugs.get(email.app) ?? email.app })
}
