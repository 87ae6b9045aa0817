/** Finds the record of one email. */
import type { EmailId } from '../domain/id.ts'
import type { EmailRecord, Store } from '../store/store.ts'
import { done, type Result, refuse } from './result.ts'

export async function findEmail(store: Pick<Store, 'findEmail'>, id: string): Promise<Result<EmailRecord>> {
  const email = await store.findEmail(id as EmailId)
  if (email !== null) return done(email)
  return refuse(
    'not_found',
    id.startsWith('req_')
      ? `"${id}" is a request, and only accepted emails are recorded; the service's log has the line of the request`
      : `there is no email "${id}"; records are kept for 30 days`,
  )
}
