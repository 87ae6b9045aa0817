/** Parts of schemas that many operations use. */

import { type TNull, type TObject, type TProperties, type TSchema, type TString, type TUnion, Type } from 'typebox'
import { appStatuses } from '../../domain/app/app.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'

/** An object that has no other fields. */
export const closed = <Fields extends TProperties>(fields: Fields): TObject<Fields> =>
  Type.Object(fields, { additionalProperties: false }) as TObject<Fields>

export const orNull = <Schema extends TSchema>(schema: Schema, description?: string): TUnion<[Schema, TNull]> =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description })

/** A time in an answer: ISO 8601, in UTC. */
export interface TTime extends TString {
  readonly format: 'date-time'
}
export const time = (description?: string) =>
  Type.String({ format: 'date-time', ...(description !== undefined && { description }) }) as TTime

/** A time in a query, which may be left out. */
export const timestamp = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', description, examples: ['2026-01-01T00:00:00Z'] }))

export const appStatus = () => Type.Enum([...appStatuses])

export const appName = () => Type.String({ description: 'The slug or id of an app.' })

/** A recipient as searches by address name it. */
export const recipientField = () =>
  Type.Optional(
    Type.String({
      pattern: `^${recipientPrefix}[\\w-]{1,100}$`,
      description: 'The `recipient` that POST /v1/emails/find answered. Addresses are never sent in a URL.',
      examples: [`${recipientPrefix}x`],
    }),
  )
