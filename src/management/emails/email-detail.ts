/** One email as operations answer with it: with its attempts, and the suppressions of its recipient. */
import { type Static, Type } from 'typebox'
import { reportSources } from '../../services/services.ts'
import type { EmailRecord } from '../../store/operator-store.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { emailFields, iso } from '../resources.ts'
import { SuppressionResource } from '../suppressions/suppression-resource.ts'

const Attempt = closed({
  at: time(),
  outcome: Type.String(),
  relay: Type.Optional(Type.String()),
  source: Type.Optional(Type.Enum([...reportSources], { description: 'Set for a report: the way it came.' })),
  ambiguous: Type.Optional(Type.Boolean()),
  reply: Type.Optional(Type.String()),
  code: Type.Optional(orNull(Type.Integer())),
  enhanced: Type.Optional(orNull(Type.String())),
})
export const EmailDetail = closed({
  ...emailFields,
  explanation: Type.String(),
  trail: Type.Array(Attempt),
  suppressions: Type.Array(SuppressionResource, {
    description: 'The suppressions of its recipient that have not ended and concern its app.',
  }),
})
export type EmailDetail = Static<typeof EmailDetail>

export const presentTrail = (email: EmailRecord): EmailDetail['trail'] =>
  email.trail.map(({ at, reply, ...attempt }) => ({
    at: iso(at),
    ...attempt,
    ...(reply && { reply: reply.text, code: reply.code, enhanced: reply.enhanced }),
  }))
