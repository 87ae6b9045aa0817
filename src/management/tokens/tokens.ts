/**
 * Management tokens: made, listed and revoked. The clear text of a token exists only in the answer that makes
 * it.
 */

import { Type } from 'typebox'
import { dayMs } from '../../domain/duration.ts'
import type { TokenId } from '../../domain/id.ts'
import { hashToken, newToken, roles } from '../../domain/operator/management-token.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { findScope, parseActorName, parseExpiry, scopeField } from '../operation/name-fields.ts'
import { always, forAdmins, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { NewTokenResource, newPageSchema, presentToken, TokenResource } from '../resources.ts'

const usualDays = 90
const daysMax = 400

export const createToken = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/tokens',
  summary: 'Creates a management token. Only this answer contains the token itself.',
  body: closed({
    name: Type.String({ minLength: 1, maxLength: 100, examples: ['deployments'] }),
    role: Type.Enum([...roles]),
    apps: Type.Optional(scopeField('The apps that the token may act on, by slug or id (default: the whole service).')),
    expiresAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: `At most ${daysMax} days from now (default: ${usualDays} days).`,
        examples: ['2027-01-31T00:00:00Z'],
      }),
    ),
  }),
  answer: NewTokenResource,
  creates: true,
  outlives: always,
  errors: ['name_taken', 'not_found'],
  async run(context, { body: { name, role, apps, expiresAt } }) {
    const { store, access } = context
    const latest = store.now() + daysMax * dayMs
    const named = parseActorName(name)
    const expiry = expiresAt === undefined ? null : parseExpiry(expiresAt, store)
    const issues = [named, expiry].flatMap((part) => (part?.ok === false ? part.issues : []))
    if (expiry?.ok && expiry.value > latest)
      issues.push({ field: 'expiresAt', code: 'too_late', message: `At most ${daysMax} days from now.` })
    if (issues.length > 0) return invalid(issues)
    const scope = await findScope(context, apps)
    if (!scope.ok) return scope
    const token = newToken()
    const end = expiry?.ok ? expiry.value : store.now() + usualDays * dayMs
    const wanted = { hash: hashToken(token), name, role, apps: scope.value, expiresAt: end }
    const record = await store.createToken(wanted, access.actor)
    if (record === 'name_taken')
      return fail('name_taken', `There is already a working token named "${name}": revoke it first.`)
    return done({ ...presentToken(record), token }, { created: true })
  },
})

export const listTokens = operation({
  ...forAdmins,
  method: 'GET',
  path: '/v1/tokens',
  summary: 'Lists the management tokens, oldest first, including revoked and expired ones.',
  query: closed(pageQuery),
  answer: newPageSchema(TokenResource),
  errors: ['cursor_mismatch'],
  run: async (context, { query }) =>
    cutList(context, (await context.store.listTokens()).map(presentToken), query, { list: 'tokens' }),
})

export const revokeToken = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/tokens/{token}',
  summary: 'Revokes a management token; takes effect for the next request. Repeating it changes nothing.',
  answer: TokenResource,
  errors: ['not_found'],
  async run({ store, access }, { params: { token } }) {
    const record = await store.revokeToken(token as TokenId, access.actor)
    if (record === null) return fail('not_found', `There is no token "${token}"; give the id of a token (tok_…).`)
    return done(presentToken(record))
  },
})
