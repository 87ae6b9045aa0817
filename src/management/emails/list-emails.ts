/** Lists emails. */
import { operation } from '../operation/operation.ts'
import { closed, recipientField, recipientPrefix } from '../operation/schema.ts'
import { EmailResource, newPageSchema } from '../resources.ts'
import { emailFilters, listPage } from './email-query.ts'

export const listEmails = operation({
  method: 'GET',
  path: '/v1/emails',
  role: 'reader',
  summary: 'Lists emails, newest first. A page may hold fewer items than `limit`, or none, and still have a `next`.',
  query: closed({
    ...emailFilters,
    recipient: recipientField(),
  }),
  answer: newPageSchema(EmailResource),
  errors: ['cursor_mismatch', 'not_found'],
  run: (context, { query: { recipient, ...filters } }) =>
    listPage(context, {
      ...filters,
      ...(recipient && { recipient: recipient.slice(recipientPrefix.length) }),
    }),
})
