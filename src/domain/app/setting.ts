/**
 * The parts of a setting of an app, and the rules that several settings share.
 *
 *     replyTo: optionalText({
 *       label: 'Reply-To',
 *       hint: 'Defaults to the sender address.',
 *       example: 'help@acme.test',
 *       check: isAddress,
 *       option: option('Sender', '--reply-to <address>', 'Reply-To address'),
 *       line: ['reply to'],
 *     }),
 */

import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { deceptive, isDeceptive } from '../controls.ts'
import { bounceLocalMax, fitsReference, isBounceBase } from '../delivery/reference.ts'
import { type AppLimits, defaultLimits } from '../limit.ts'
import { type Issue, issuesOf } from '../parsed.ts'
import { parsePlainAddress } from '../request/email-address.ts'
import type { EmailType } from '../request/email-kinds.ts'
import type { HostedLinkMode } from './hosted-link.ts'
import type { OwnWordsByType } from './own-words.ts'

/** The parts of a setting, of which operators see most, and who may change it. */
type Parts<Value> = {
  /** In forms and in the audit. */
  readonly label: string
  /** Below the field of a form. */
  readonly hint?: string
  /** In the document of the API. */
  readonly description?: string
  readonly example?: string
  /** `admin`: of the app. `service`: an admin of the whole service. Otherwise an operator of the app. */
  readonly role?: 'admin' | 'service'
  /** The faults of a value that need no other. */
  readonly check?: (value: Value, field: string) => readonly Issue[]
  readonly option?: SettingOption
  /** Its line in `app show`; none for a value that `describe` has no words for. */
  readonly line?: readonly [name: string, describe?: (value: Value) => string | undefined]
  readonly choices?: readonly string[]
  /** The names that an object may have, in order. */
  readonly keys?: readonly string[]
}

/** An option of commands. A list or map has `--remove-…` besides, and a switch `--no-…`. */
type SettingOption = {
  /** Its heading in the help. */
  readonly group: string
  readonly flags: string
  readonly about: string
  /** About the option that removes an entry, or turns the setting off. */
  readonly undo: string
}

export const option = (group: string, flags: string, about: string, undo = ''): SettingOption => {
  return { group, flags, about, undo }
}

/** `map`: texts by the names in `keys`. `authHooks` and `ownWords` have objects by theirs. */
type Kind = 'text' | 'switch' | 'whole' | 'list' | 'choice' | 'map' | 'authHooks' | 'ownWords'

/** An optional setting may be absent. One without a default must be given, unless it is optional. */
export type Setting = Parts<never> & {
  readonly kind: Kind
  readonly isOptional: boolean
  readonly default?: unknown
}

/** An object of settings. */
export type SettingGroup = {
  readonly fields: Readonly<Record<string, Setting>>
  readonly role?: 'admin' | 'service'
}

declare const brand: unique symbol
/** With the type of its value, for `AppSettings`. */
type Typed<Value, Optional> = Setting & { readonly [brand]?: Value; readonly isOptional: Optional }

type SettingValue<Of> = Of extends { readonly fields: infer Fields }
  ? SettingValues<Fields>
  : Of extends { readonly [brand]?: infer Value }
    ? Value
    : never

/** The values of a table of settings. */
export type SettingValues<Table> = {
  readonly [Name in keyof Table as Table[Name] extends { isOptional: true } ? never : Name]: SettingValue<Table[Name]>
} & {
  readonly [Name in keyof Table as Table[Name] extends { isOptional: true } ? Name : never]?: SettingValue<Table[Name]>
}

const newSetting =
  <Value>(kind: Kind) =>
  (parts: Parts<Value> & { readonly default?: Value }): Typed<Value, false> => ({ ...parts, kind, isOptional: false })

const newOptional =
  <Value>(kind: Kind) =>
  (parts: Parts<Value>): Typed<Value, true> => ({ ...parts, kind, isOptional: true })

export const text = newSetting<string>('text')
export const optionalText = newOptional<string>('text')
export const toggle = newSetting<boolean>('switch')
export const list = newSetting<readonly string[]>('list')
export const linkMode = newSetting<HostedLinkMode>('choice')
export const urlsOfTypes = newSetting<Readonly<Partial<Record<EmailType, string>>>>('map')
export const authHooks = newOptional<AuthHookSettings>('authHooks')
export const ownWords = newOptional<OwnWordsByType>('ownWords')

type LimitParts = Pick<Parts<number>, 'label' | 'line'> & Pick<SettingOption, 'flags' | 'about'>

export const limit = (name: keyof AppLimits, max: number, { flags, about, ...parts }: LimitParts) =>
  newSetting<number>('whole')({
    ...parts,
    default: defaultLimits[name],
    check: (value, field) =>
      Number.isInteger(value) && value >= 1 && value <= max
        ? []
        : [{ field, code: 'malformed_limit', message: `A whole number from 1 to ${max}.` }],
    option: option('Limits', flags, `${about} (default: ${defaultLimits[name]})`),
  })

type Check = (value: string, field: string) => readonly Issue[]

/** A rule for one value. */
export const rule =
  (isRight: (value: string) => boolean, code: string, message: string): Check =>
  (value, field) =>
    isRight(value) ? [] : [{ field, code, message }]

export const both =
  (one: Check, other: Check): Check =>
  (value, field) => [...one(value, field), ...other(value, field)]

export const isText = (max: number): Check =>
  rule(
    (value) => value.trim() !== '' && value.length <= max && !isDeceptive(value),
    'malformed_text',
    `1 to ${max} characters, not blank, without ${deceptive}.`,
  )

export const isAddress: Check = (value, field) => issuesOf([parsePlainAddress(value, field)])

export const isNoAddress = rule(
  (value) => !/[<>]|\S@\S/.test(value),
  'address_in_name',
  'A name without an address: many programs show the name alone.',
)

export const isHttpsUrl = (value: string): boolean =>
  /^https:\/\/[\x21-\x7e]{1,2000}$/.test(value) && URL.parse(value)?.username === ''

export const isContact = rule(
  (value) => value.length <= 200 && (parsePlainAddress(value, 'supportContact').ok || isHttpsUrl(value)),
  'malformed_contact',
  'An email address, or an https page, of at most 200 characters.',
)

export const fitsBounces = rule(
  (value) => !isBounceBase(value) || fitsReference(value),
  'too_long',
  `With a + in front of the @, at most ${bounceLocalMax} characters in front of the +.`,
)
