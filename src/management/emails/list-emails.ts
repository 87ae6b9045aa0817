/** Lists emails. */
import { Type } from 'typebox'
import { operation } from '../operation/operation.ts'
import { closed } from '../operation/schema.ts'
import { EmailResource, newPageSchema } from '../resources.ts'
import { emailFilters, listPage, recipientPrefix } from './email-query.ts'

export const listEmails = operation({
  method: 'GET',
  path: '/v1/emails',
  role: 'reader',
  target: 'none',
  summary:
    'Lists emails, newest first. A page may hold fewer items than `limit`, or none, and still have a `next`.',
  query: closed({
    ...emailFilters,
    recipient: Type.Optional(
      Type.String({
        pattern: `^${recipientPrefix}[\\w-]{1,100}$`,
        description: 'The `recipient` that POST /v1/emails/find answered. Addresses are never sent in a URL.',
        examples: [`${recipientPrefix}x`],
      }),
    ),
  }),
  answer: newPageSchema(EmailResource),
  errors: ['cursor_mismatch', 'not_found'],
  run: (context, { query: { recipient, ...filters } }) =>
    listPage(context, {
      ...filters,
      ...(recipient && { recipient: recipient.slice(recipientPrefix.length) }),
    }),
})
