/** The actor of changes that tests make directly in a store. */

import type { AppId } from '../../src/domain/id.ts'
import type { Actor } from '../../src/domain/operator/audit.ts'
import type { EmailQuery, EmailRecord } from '../../src/store/operator-store.ts'
import type { Store } from '../../src/store/store.ts'

export const operator: Actor = { kind: 'local', id: null, name: 'test', via: 'cli', requestId: null }

/** Deletes an app as an operator does: an app is disabled first. */
export async function deleteApp(store: Store, id: AppId): Promise<void> {
  await store.updateApp(id, { status: 'disabled' }, operator)
  await store.deleteApp(id, operator)
}

/** All emails that match, newest first, page by page; at most `limit`. */
export async function listEmails(store: Store, query: EmailQuery): Promise<EmailRecord[]> {
  const found: EmailRecord[] = []
  let before = query.before
  for (;;) {
    const page = await store.listEmails({ ...query, ...(before && { before }) })
    found.push(...page.items)
    if (page.next === null || found.length >= query.limit) return found.slice(0, query.limit)
    before = page.next
  }
}
