/** Finds the emails to one address. The audit records the search by the address's keyed hash. */
import { Type } from 'typebox'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { operation } from '../operation/operation.ts'
import { done, invalid } from '../operation/result.ts'
import { closed, recipientPrefix } from '../operation/schema.ts'
import { EmailResource, newPageSchema } from '../resources.ts'
import { emailFilters, listPage } from './email-query.ts'

export const findEmails = operation({
  method: 'POST',
  path: '/v1/emails/find',
  role: 'reader',
  summary:
    "Finds the emails to an address, newest first. Pass the answer's `recipient` to GET /v1/emails for further pages.",
  body: closed({ ...emailFilters, to: Type.String({ examples: ['ada@example.com'] }) }),
  answer: closed({ recipient: Type.String(), ...newPageSchema(EmailResource).properties }),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { body: { to, ...filters } }) {
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const { store, access } = context
    const recipient = store.nameRecipient(address.value)
    const page = await listPage(context, { ...filters, recipient })
    if (!page.ok) return page
    const target = `${recipientPrefix}${recipient}`
    await store.recordAction({ action: 'email.find', app: null, target, before: null, after: null }, access.actor)
    return done({ recipient: target, ...page.value })
  },
})
