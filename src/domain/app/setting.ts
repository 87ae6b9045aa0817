/**
 * The parts of a setting of an app, and the rules that several settings share.
 *
 *     replyTo: optional(text('help@acme.test'), {
 *       label: 'Reply-To',
 *       hint: 'Defaults to the sender address.',
 *       check: isAddress,
 *       option: option('Sender', '--reply-to <address>', 'Reply-To address'),
 *       line: ['reply to'],
 *     }),
 */
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { deceptive, isDeceptive } from '../controls.ts'
import { bounceLocalMax, fitsReference, isBounceBase } from '../delivery/reference.ts'
import { parseEmailAddress } from '../request/email-address.ts'
import type { Issue } from '../request/rejection.ts'
import { type AppLimits, defaultLimits } from './limit.ts'

/** The parts of a setting that operators see, and who may change it. */
export type Parts<Value> = {
  /** In forms and in the audit. */
  readonly label: string
  /** Below the field of a form. */
  readonly hint?: string
  /** `admin`: of the app. `service`: an admin of the whole service. Otherwise an operator of the app. */
  readonly role?: 'admin' | 'service'
  /** The faults of a value that need no other. */
  readonly check?: (value: Value, field: string) => readonly Issue[]
  readonly option?: SettingOption
  /** Its line in `app show`. */
  readonly line?: readonly [name: string, describe?: (value: Value) => string]
}

/** An option of commands. A list has `--remove-…` besides, and a switch `--no-…`. */
type SettingOption = {
  /** Its heading in the help. */
  readonly group: string
  readonly flags: string
  readonly about: string
  /** About the option that removes an entry, or turns the setting off. */
  readonly undo: string
}

export const option = (group: string, flags: string, about: string, undo = ''): SettingOption => ({
  ...{ group, flags, about, undo },
})

/** A setting with one value or list. Null removes it if it is optional, and else gives its default. */
export type Setting = Parts<never> & { readonly schema: TSchema; readonly default?: unknown }
/** An object of settings. */
export type SettingGroup = Pick<Setting, 'schema' | 'role' | 'default'> & {
  readonly fields: Readonly<Record<string, Setting>>
}

/** Without a default it must be given. */
export const setting = <Schema extends TSchema>(
  schema: Schema,
  parts: Parts<Static<Schema>> & { readonly default?: Static<Schema> },
) => ({ schema, ...parts })

/** Without a value it is absent. */
export const optional = <Schema extends TSchema>(schema: Schema, parts: Parts<Static<Schema>>) => ({
  schema: Type.Optional(schema),
  ...parts,
})

type Fields = Readonly<Record<string, { readonly schema: TSchema }>>
type Schemas<Of extends Fields> = { [Name in keyof Of]: Of[Name]['schema'] }

export const schemasOf = <Of extends Fields>(fields: Of): Schemas<Of> =>
  Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema])) as Schemas<Of>

export const group = <Of extends Fields>(
  fields: Of,
  more: Pick<Setting, 'role'> & { readonly default?: Partial<Static<TObject<Schemas<Of>>>> } = {},
) => ({ schema: Type.Object(schemasOf(fields), { additionalProperties: false }), fields, ...more })

export const text = (...examples: string[]) => Type.String({ examples })

type Check = (value: string, field: string) => readonly Issue[]

/** A rule for one value. */
export const rule =
  (isRight: (value: string) => boolean, code: string, message: string): Check =>
  (value, field) =>
    isRight(value) ? [] : [{ field, code, message }]

export const isText = (max: number): Check =>
  rule(
    (value) => value.trim() !== '' && value.length <= max && !isDeceptive(value),
    'malformed_text',
    `1 to ${max} characters, not blank, without ${deceptive}.`,
  )

export const isAddress: Check = (value, field) => {
  const address = parseEmailAddress(value, field)
  return address.ok ? [] : address.issues
}

export const isNoAddress = rule(
  (value) => !/[<>]|\S@\S/.test(value),
  'address_in_name',
  'A name without an address: many programs show the name alone.',
)

export const isHttpsUrl = (value: string): boolean =>
  /^https:\/\/[\x21-\x7e]{1,2000}$/.test(value) && URL.parse(value)?.username === ''

export const isContact = rule(
  (value) => value.length <= 200 && (parseEmailAddress(value, 'supportContact').ok || isHttpsUrl(value)),
  'malformed_contact',
  'An email address, or an https page, of at most 200 characters.',
)

export const fitsBounces = rule(
  (value) => !isBounceBase(value) || fitsReference(value),
  'too_long',
  `With a + in front of the @, at most ${bounceLocalMax} characters in front of the +.`,
)

export const limit = (
  name: keyof AppLimits,
  max: number,
  {
    option: [flags, about],
    ...parts
  }: Pick<Parts<number>, 'label' | 'line'> & {
    readonly option: readonly [flags: string, about: string]
  },
) =>
  setting(Type.Integer({ examples: [100] }), {
    ...parts,
    default: defaultLimits[name],
    check: (value, field) =>
      Number.isInteger(value) && value >= 1 && value <= max
        ? []
        : [{ field, code: 'malformed_limit', message: `A whole number from 1 to ${max}.` }],
    option: option('Limits', flags, `${about} (default: ${defaultLimits[name]})`),
  })
